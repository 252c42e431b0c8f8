// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine of Meter and BandwidthMeter: measures a rate, and finds its band. A band is the range between two
//! neighbouring rates of the configuration.

use super::rate::Unit;
use super::shared_rate::{Meter, SharedRate, count_in_kernel};
use castanet_element::Attached;
use castanet_element::kernel::{Code, Lowered, Test};
use castanet_element::prelude::*;
use castanet_element::spec::Args;

/// The arguments of a meter. Their type gives the unit of its rates.
pub trait BandArgs: Args {
    /// The unit of the rates.
    type Unit: Unit;
    /// The rates that separate the outputs, in increasing order.
    fn rates(&self) -> Vec<u64>;
}

/// Measures the rate of packets, and sends them to the output of the band that contains the rate.
#[derive(Counts)]
pub struct Bands<A> {
    args: A,
    /// Measures the rate of the packets of all workers.
    meter: Meter,
    /// The current band.
    band: usize,
    /// The rates that separate the outputs, in increasing order.
    rates: Vec<f64>,
    /// The time at which a table was attached.
    attached: i64,
}

impl<A: BandArgs> Bands<A> {
    /// Returns the measured rate.
    pub(super) fn rate(&mut self, cx: &mut Cx<'_>) -> f64 {
        self.meter.shared().rate(cx.peek())
    }
}

impl<A: BandArgs> Element for Bands<A> {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let units = A::Unit::cost_of_all(batch.as_slice());
        // The average changes only at the end of an epoch, so all packets that arrive at the same time
        // fall into the same band.
        if let Some(rate) = self.meter.update(units, cx.peek()) {
            self.band = self.rates.iter().take_while(|&&r| r <= rate).count();
        }
        cx.forward(self.band, batch);
    }
}

/// Formats a multiple of 1/1024 with the fewest decimal places that distinguish it from the neighbouring multiples:
/// `19.531`.
fn shortest(v: f64) -> String {
    let mut texts = (0..5).map(|places| format!("{v:.places$}"));
    let near = |text: &String| text.parse::<f64>().is_ok_and(|t| (t - v).abs() < 1.0 / 2048.0);
    texts.find(near).unwrap_or_else(|| v.to_string())
}

#[handlers]
impl<A: BandArgs> Bands<A> {
    /// The rates that separate the outputs, one per line, rounded down to the resolution of the average.
    #[read]
    fn meters(&self) -> Table {
        Table(self.rates.iter().map(|r| shortest(*r)).collect::<Vec<_>>().join("\n"))
    }
}

impl<A: BandArgs> Lifecycle for Bands<A> {
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.meter.shared().continue_from(old.meter.shared(), cx.peek());
        Ok(())
    }
}

impl<A: BandArgs> Engine for Bands<A> {
    type Args = A;
    fn build(args: A, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let rates = args.rates();
        if rates.is_empty() {
            return Err("RATE: required argument missing".into());
        }
        if !rates.is_sorted_by(|a, b| a < b) {
            return Err("rates must be in increasing order, each once".into());
        }
        // Each given rate is the upper end of the band of one output. The last output is for higher rates.
        let outputs = rates.len().saturating_add(1);
        if cx.outputs != outputs {
            let text =
                format!("{} rates need {outputs} outputs, and {} are connected", rates.len(), cx.outputs);
            return Err(text.into());
        }
        let rates = rates.into_iter().map(A::Unit::rounded).collect();
        let meter = Meter::new(cx.share(|| SharedRate::new(A::Unit::average())));
        Ok(Bands { args, meter, band: 0, rates, attached: 0 })
    }
    fn args(&mut self) -> &mut A {
        &mut self.args
    }
}

impl<A: BandArgs> InKernel for Bands<A> {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let like = A::Unit::average();
        let average = if A::Unit::PACKETS {
            count_in_kernel(code, like, 1i64)
        } else {
            let length = code.length();
            count_in_kernel(code, like, length)
        };
        for (output, rate) in self.rates.iter().enumerate() {
            let higher = code.label();
            // Averages are below 2^56.
            let units = i64::try_from(like.units(*rate)).unwrap_or(i64::MAX);
            code.branch_wide(average, Test::AtLeast, units, higher);
            code.next(output);
            code.bind(higher);
        }
        code.next(self.rates.len());
        Ok(())
    }
    fn attach(&mut self, to: Attached) {
        match to {
            Attached::Time(now) => self.attached = now,
            Attached::Table(_, words) => self.meter.share(words, self.attached),
            Attached::Points(_) | Attached::Started | Attached::Stopped => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_of_a_1024th_are_shown_briefly() {
        for (v, text) in
            [(0.0, "0"), (20.0, "20"), (19.53125, "19.531"), (7.8125, "7.8125"), (9.765_625, "9.766")]
        {
            assert_eq!(shortest(v), text);
        }
    }
}
