// SPDX-License-Identifier: MIT OR Apache-2.0
//! A measured rate, and the bands into which it falls.

use super::rate::Unit;
use castanet_element::prelude::*;
use castanet_tables::Ewma;

/// What Meter and BandwidthMeter do; they differ in what their rates count.
pub(super) struct Bands {
    unit: Unit,
    average: Ewma,
    /// Where each band ends and the next begins.
    rates: Vec<u64>,
}

impl Bands {
    /// With an output for what is below each rate, and one for the rest.
    pub(super) fn new(rates: Vec<u64>, unit: Unit, outputs: usize) -> Result<Bands, ConfigError> {
        if rates.is_empty() {
            return Err("RATE: required argument missing".into());
        }
        if !rates.is_sorted_by(|a, b| a < b) {
            return Err("rates must be in increasing order, each once".into());
        }
        if outputs != rates.len().saturating_add(1) {
            return Err(format!(
                "{} rates need {} outputs, and {outputs} are connected",
                rates.len(),
                rates.len().saturating_add(1)
            )
            .into());
        }
        let average = if unit == Unit::Packets { Ewma::packets() } else { Ewma::bytes() };
        Ok(Bands { unit, average, rates })
    }

    pub(super) fn push(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        let units = match self.unit {
            Unit::Packets => batch.len() as u64,
            Unit::Bytes => batch.iter().map(|p| p.len() as u64).sum(),
        };
        let now = cx.core().clock.peek();
        // An epoch shows in the average only when it is over, so packets of one moment all fall into the same band.
        self.average.update(units, now);
        let rate = self.average.rate(now);
        let band = self.rates.iter().take_while(|&&r| r as f64 <= rate).count();
        cx.forward(band, batch);
    }

    /// Goes on with the rate that another one measured (hot swap).
    pub(super) fn go_on_from(&mut self, old: &Bands) {
        self.average = old.average;
    }

    pub(super) fn read(&mut self, handler: &str, cx: &mut Cx<'_>) -> String {
        if handler == "rate" {
            self.average.rate(cx.core().clock.peek()).to_string()
        } else {
            self.rates.iter().map(u64::to_string).collect::<Vec<_>>().join("\n")
        }
    }
}
