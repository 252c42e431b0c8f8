// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ledger of a router: where each packet came from and what became of it.
//!
//! A packet begins when it enters the router, or when an element makes it from another packet. It ends when it leaves
//! the router or is dropped. In between, an element holds it, or it waits on an edge. Elements count the packets that
//! begin and end ([`Entry`], drops), and report how many they hold. Elements that only pass packets on count nothing,
//! so the ledger costs them no time.

use castanet_element::run_loop::Entry;
use castanet_spec::{ClassSpec, LedgerRole, Reason};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::fmt;

/// The ledger account of one element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The name of the element.
    pub element: String,
    /// The class of the element, as written in the configuration.
    pub class: String,
    /// The configuration string of the element.
    pub config: String,
    /// Whether a hot swap has removed the element.
    pub gone: bool,
    /// The kinds of ledger entries that the element's class declares.
    pub ledger_role: LedgerRole,
    /// The number of packets that entered the router through the element.
    pub entered: u64,
    /// The number of packets that the element made from other packets.
    pub made: u64,
    /// The number of packets that left the router through the element.
    pub left: u64,
    /// The number of packets that the element holds.
    pub held: u64,
    /// The number of packets that the kernel dropped before the element could read them. They never entered the router.
    /// The element reports this number at cleanup.
    pub missed: u64,
    /// The number of packets that the element dropped, by reason. If its class declares a reason as one of its `ends`,
    /// packets dropped for this reason are in `left` instead.
    pub drops: BTreeMap<Reason, u64>,
}

/// The ledger of a router.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The accounts of the current elements, in the order of their declaration. After them, the accounts of elements
    /// that hot swaps removed, in the order of their names.
    pub accounts: Vec<Account>,
    /// The number of packets that wait on edges.
    pub waiting: u64,
}

impl Account {
    /// Returns the number of packets that the element dropped.
    pub fn dropped(&self) -> u64 {
        self.drops.values().sum()
    }
    /// Whether all counts are 0.
    pub(crate) fn is_empty(&self) -> bool {
        self.entered + self.made + self.left + self.held + self.missed + self.dropped() == 0
    }
    /// Closes the account of an element that a hot swap removes. Counts the `n` packets that are still in the element
    /// as dropped.
    pub(crate) fn end(mut self, n: u64) -> Account {
        if n > 0 {
            *self.drops.entry(Reason::Stopped).or_default() += n;
        }
        Account { gone: true, ..self }
    }
    /// Returns an account of the same element with all counts set to 0.
    pub(crate) fn without_counts(&self) -> Account {
        let Account { element, class, config, gone, ledger_role, .. } = self.clone();
        Account { element, class, config, gone, ledger_role, ..Account::default() }
    }
    /// Adds the counts of another account to this one.
    pub(crate) fn add(&mut self, other: &Account) {
        self.entered += other.entered;
        self.made += other.made;
        self.left += other.left;
        self.held += other.held;
        self.missed += other.missed;
        for (&reason, n) in &other.drops {
            *self.drops.entry(reason).or_default() += n;
        }
    }
    pub(crate) fn enter(&mut self, entry: Entry, n: u64) {
        *match entry {
            Entry::Entered => &mut self.entered,
            Entry::Made => &mut self.made,
            Entry::Left => &mut self.left,
            Entry::Missed => &mut self.missed,
        } += n;
    }
    pub(crate) fn drop(&mut self, spec: Option<&ClassSpec>, reason: Reason, n: u64) {
        if spec.is_some_and(|s| s.ends.contains(&reason)) {
            self.left += n;
        } else {
            *self.drops.entry(reason).or_default() += n;
        }
    }
}

impl Ledger {
    fn sum(&self, f: impl Fn(&Account) -> u64) -> u64 {
        self.accounts.iter().map(f).sum()
    }
    /// The number of packets that entered the router.
    pub fn entered(&self) -> u64 {
        self.sum(|a| a.entered)
    }
    /// The number of packets that elements made from other packets.
    pub fn made(&self) -> u64 {
        self.sum(|a| a.made)
    }
    /// The number of packets that left the router.
    pub fn left(&self) -> u64 {
        self.sum(|a| a.left)
    }
    /// The number of packets that were dropped.
    pub fn dropped(&self) -> u64 {
        self.sum(Account::dropped)
    }
    /// The number of packets that are still in the router: held by elements or waiting on edges.
    pub fn held(&self) -> u64 {
        self.sum(|a| a.held) + self.waiting
    }
    /// The number of unaccounted packets: those that entered or were made, minus those that left, were dropped or are
    /// still in the router. Negative if more packets are accounted for than entered or were made. A number other than 0
    /// means that a class counts wrongly.
    pub fn missing(&self) -> i64 {
        let begun = self.entered().wrapping_add(self.made());
        begun.wrapping_sub(self.left() + self.dropped() + self.held()) as i64
    }
    /// Returns a line of text for each kind of entry that an element made although its class does not declare it.
    pub fn undeclared(&self) -> Vec<String> {
        let found = self.accounts.iter().flat_map(|a| {
            [
                (a.entered, LedgerRole::ENTERS, "enters"),
                (a.made, LedgerRole::MAKES, "makes"),
                (a.left, LedgerRole::LEAVES, "leaves"),
                (a.held, LedgerRole::HOLDS, "holds"),
            ]
            .into_iter()
            .filter(|(n, role, _)| *n > 0 && !a.ledger_role.contains(*role))
            .map(move |(n, _, word)| {
                format!("{} :: {} does not declare ledger({word}): {n}", a.element, a.class)
            })
        });
        found.collect()
    }
    /// Checks that the ledger balances and that classes declare all kinds of entries that they make. For tests.
    ///
    /// # Panics
    /// When the ledger does not balance, or a class makes an entry that it does not declare.
    #[track_caller]
    pub fn check(&self) {
        assert!(self.missing() == 0, "{self}");
        let undeclared = self.undeclared();
        assert!(undeclared.is_empty(), "{undeclared:?}");
    }
}

/// Prints the sums and all accounts that are not zero, so that a miscounting class can be found.
impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "the ledger misses {} packets: {} entered, {} made, {} left, {} dropped, {} held",
            self.missing(),
            self.entered(),
            self.made(),
            self.left(),
            self.dropped(),
            self.held(),
        )?;
        for a in self.accounts.iter().filter(|a| !a.is_empty()) {
            writeln!(
                f,
                "  {} :: {}{}: {} entered, {} made, {} left, {} held, dropped {:?}",
                a.element,
                a.class,
                if a.gone { " (swapped away)" } else { "" },
                a.entered,
                a.made,
                a.left,
                a.held,
                a.drops
            )?;
        }
        Ok(())
    }
}

/// The accounts of elements that hot swaps removed, by name and class.
#[derive(Default)]
pub(crate) struct Former(Mutex<BTreeMap<(String, String), Account>>);

impl Former {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<(String, String), Account>> {
        self.0.lock()
    }
    /// Adds the account of an element, unless all its counts are 0.
    pub fn add(&self, account: Account) {
        if !account.is_empty() {
            let key = (account.element.clone(), account.class.clone());
            self.lock().entry(key).or_insert_with(|| account.without_counts()).add(&account);
        }
    }
    /// The accounts of all removed elements.
    pub fn accounts(&self) -> Vec<Account> {
        self.lock().values().cloned().collect()
    }
}

/// Formats the drops of an element. Each line has a reason, a tab and the number of packets. Reasons that the class
/// declares as intended ends of packets (`ends`) are left out.
pub(crate) fn reasons(spec: Option<&ClassSpec>, drops: impl Iterator<Item = (Reason, u64)>) -> String {
    let is_end = |r: &Reason| spec.is_some_and(|s| s.ends.contains(r));
    drops.filter(|d| !is_end(&d.0)).fold(String::new(), |out, (r, n)| out + &format!("{r}\t{n}\n"))
}

/// Adds up the drop tables of the replicas of one element, and returns the sum as a table.
pub(crate) fn merge_reasons(tables: &[String]) -> String {
    let mut all: BTreeMap<&str, u64> = BTreeMap::new();
    for line in tables.iter().flat_map(|t| t.lines()) {
        if let Some((reason, n)) = line.split_once('\t') {
            *all.entry(reason).or_default() += n.parse::<u64>().unwrap_or(0);
        }
    }
    let known = Reason::ALL.iter().filter_map(|r| Some((r, all.get(r.name())?)));
    known.fold(String::new(), |out, (r, n)| out + &format!("{r}\t{n}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(n: u64) -> Account {
        Account {
            element: "e".into(),
            class: "C".into(),
            config: "5".into(),
            ledger_role: LedgerRole::ENTERS,
            entered: n,
            made: 2 * n,
            left: 3 * n,
            held: 4 * n,
            missed: 6 * n,
            drops: [(Reason::QueueFull, 5 * n)].into(),
            ..Account::default()
        }
    }

    #[test]
    fn accounts_of_an_element_that_swaps_took_away_are_added() {
        let former = Former::default();
        former.add(account(0).end(0));
        assert_eq!(former.accounts(), [], "nothing to remember");
        former.add(account(1).end(0));
        former.add(account(10).end(7));
        let drops = [(Reason::QueueFull, 55), (Reason::Stopped, 7)].into();
        assert_eq!(former.accounts(), [Account { gone: true, drops, ..account(11) }]);
        // Packets that never entered do not affect the balance, but stay in the account.
        let missed = Account { element: "m".into(), missed: 3, ..Account::default() };
        former.add(missed.clone());
        assert!(former.accounts().contains(&missed));
        assert_eq!(Ledger { accounts: vec![missed], waiting: 0 }.missing(), 0);
        // An element with the same name but another class is a different element.
        former.add(Account { class: "D".into(), ..account(1) });
        let classes: Vec<_> = former.accounts().iter().map(|a| (a.class.clone(), a.entered)).collect();
        assert_eq!(classes, [("C".into(), 11), ("D".into(), 1), (String::new(), 0)]);
        assert_eq!(account(1).end(0).drops.len(), 1, "no entry for no packets");
    }

    #[test]
    fn a_ledger_adds_its_accounts_and_names_entries_that_are_not_declared() {
        let ledger = Ledger { accounts: vec![account(1), account(2)], waiting: 100 };
        assert_eq!((ledger.entered(), ledger.made(), ledger.left()), (3, 6, 9));
        assert_eq!((ledger.dropped(), ledger.held(), ledger.missing()), (15, 112, 9 - 136));
        let text =
            ["makes): 2", "leaves): 3", "holds): 4"].map(|w| format!("e :: C does not declare ledger({w}"));
        assert_eq!(Ledger { accounts: vec![account(1)], waiting: 0 }.undeclared(), text);
        assert_eq!(Ledger { accounts: vec![account(0)], waiting: 9 }.undeclared(), [""; 0]);
    }
}
