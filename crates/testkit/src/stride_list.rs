// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stride scheduler that is as simple as possible, to compare other implementations with.

/// The stride of a client with one ticket. A client with n tickets has 1/n of this stride.
const ONE_TICKET: u64 = 1 << 32;

/// Schedules clients, such as tasks or ports, which are numbered 0, 1, 2... The client with the lowest pass gets the
/// next turn. Then its pass grows by its stride, and the client enters the list of clients again. Among clients with
/// equal passes, the one that entered last is next.
pub struct StrideList {
    /// For each client: its pass, its entry number, and its stride. Each time a client enters the list, it gets the
    /// next entry number.
    clients: Vec<(u64, u64, u64)>,
    entered: u64,
}

impl StrideList {
    /// Creates one client for each entry of `tickets`.
    pub fn new(tickets: &[u32]) -> StrideList {
        let strides = tickets.iter().map(|&t| ONE_TICKET / u64::from(t));
        let clients: Vec<_> = strides.zip(0..).map(|(stride, i)| (stride, i, stride)).collect();
        StrideList { entered: clients.len() as u64, clients }
    }
    /// Returns the client with the next turn.
    pub fn turn(&mut self) -> Option<usize> {
        let order = |&(_, client): &(usize, &(u64, u64, u64))| (client.0, u64::MAX - client.1);
        let (next, _) = self.clients.iter().enumerate().min_by_key(order)?;
        let client = &mut self.clients[next];
        (client.0, client.1) = (client.0 + client.2, self.entered);
        self.entered += 1;
        Some(next)
    }
}
