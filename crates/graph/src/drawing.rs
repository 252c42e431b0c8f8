// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drawings of configurations, as SVG and for Graphviz.
//!
//! The modules, bottom up:
//!
//! - `layout` and `columns`: positions of the boxes and lines of one compound
//! - `scene`: the boxes and lines of each compound
//! - `card`: the text and the size of boxes
//! - `place`: positions in the whole drawing
//! - `rate`: packets per second as a short text
//! - `symbols`: ports, arrow heads and the legend
//! - `svg`, `dot`, `gml`, `graphml`: the output formats
//! - `picture`: the positions, for programs that draw by themselves

mod card;
mod columns;
mod dot;
mod gml;
mod graphml;
mod layout;
mod picture;
mod place;
mod rate;
mod scene;
mod svg;
mod symbols;

use crate::graph::Graph;
use card::counted;
pub use picture::{Frame, Picture, PictureBox, PictureLine, PicturePort, Shown};
use scene::Scene;
pub use scene::{Fold, UnknownCompound};
pub use svg::escaped;

/// A drawing of a configuration.
#[derive(Clone, Debug)]
pub struct Drawing<'a> {
    graph: &'a Graph,
    scene: Scene,
}

impl<'a> Drawing<'a> {
    /// Creates a drawing in which some compounds are single boxes, and the others are frames around their elements.
    ///
    /// # Errors
    /// A name in `fold` is neither the name nor the class of a compound.
    pub fn new(graph: &'a Graph, fold: &Fold) -> Result<Drawing<'a>, UnknownCompound> {
        Ok(Drawing { graph, scene: Scene::new(graph, fold)? })
    }
    /// Shows the packets per second on each connection, by its index in the flat configuration. Rates that are not known
    /// are left out.
    #[must_use]
    pub fn with_rates(mut self, rates: Vec<Option<f64>>) -> Drawing<'a> {
        self.scene.rates = Some(rates);
        self
    }
    /// The drawing as SVG. In a browser, a click on the name of a compound folds it.
    pub fn svg(&self) -> String {
        svg::svg(self.graph, &self.scene)
    }
    /// The drawing for Graphviz. Compounds are clusters.
    pub fn dot(&self) -> String {
        dot::dot(self.graph, &self.scene)
    }
    /// The graph in GML, the Graph Modelling Language. Folded compounds are nodes; open ones are left out.
    pub fn gml(&self) -> String {
        gml::gml(self.graph, &self.scene)
    }
    /// The graph in GraphML. Open compounds are nested graphs.
    pub fn graphml(&self) -> String {
        graphml::graphml(self.graph, &self.scene)
    }
}

/// The title of a drawing, which browsers and screen readers show.
fn title(graph: &Graph, scene: &Scene) -> String {
    let connections = counted(scene.connections, "connection");
    format!("Click configuration: {}, {connections}", counted(graph.len(), "element"))
}

#[cfg(test)]
mod tests;
