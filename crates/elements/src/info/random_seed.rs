// SPDX-License-Identifier: MIT OR Apache-2.0
//! RandomSeed: makes every run use the same random numbers.

use castanet_element::prelude::*;
use castanet_element::random::Seed;

/// Seeds the elements' random numbers, so that every run of the configuration uses the same numbers.
///
/// Each element derives its random numbers from this seed and from its name. The seed of the command line (`--seed`)
/// overrides this seed. Numbers that others must not predict, such as ports of rewriters and keys of hash tables, do
/// not depend on the seed. Without SEED the element has no effect. If there are several RandomSeeds, the last one is
/// used.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// RandomSeed(17);
/// InfiniteSource(LIMIT 5, STOP true) -> RandomSample(0.5) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "RandomSeed", ports = "0/0", processing = "a/a", packets = "/", workers = replicate)]
#[class(information, build, handlers)]
pub struct RandomSeed {
    args: Args,
    seed: Seed,
}

/// Arguments of RandomSeed.
#[derive(Args)]
pub struct Args {
    /// The seed of the random numbers of all elements.
    pub seed: Option<u32>,
}

impl Element for RandomSeed {}

impl Build for RandomSeed {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(RandomSeed { args, seed: cx.random_seed() })
    }
}

impl Information for RandomSeed {
    fn inform(config: &str, scope: &str, names: &mut Names) -> Result<(), ConfigError> {
        let cx = ArgCx { scope, names, origin: Origin::Operator };
        // Errors in the arguments are not reported here: building the element from the same arguments reports them.
        if let (Some(Args { seed: Some(seed) }), _) = Args::parse(config, cx) {
            names.set_seed(Some(seed.into()));
        }
        Ok(())
    }
}

#[handlers]
impl RandomSeed {
    /// The seed in use; `system` for random numbers of the kernel. The seed of a running router cannot be
    /// changed.
    #[read(merge = first)]
    fn seed(&self) -> String {
        match self.seed {
            Seed::Fixed(n) => n.to_string(),
            Seed::System => "system".into(),
        }
    }
    #[write]
    fn set_seed(&mut self, _: u32) -> Result<(), HandlerError> {
        Err("the elements have drawn random numbers already; give SEED or --seed".into())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::Kit;

    fn names(config: &str) -> Names {
        let mut names = Names::new();
        RandomSeed::inform(config, "", &mut names).unwrap();
        names
    }
    fn kit(config: &str) -> Result<Kit<RandomSeed>, Vec<String>> {
        Kit::with_names(config, 0, 0, names(config))
    }

    #[test]
    fn seeds() {
        assert_eq!(names("").seed(), None);
        for config in ["17", "SEED 17", " 0x11 "] {
            assert_eq!(names(config).seed(), Some(17), "{config}");
            let mut kit = kit(config).unwrap();
            assert_eq!(kit.read("seed").unwrap(), "17");
            assert!(kit.write("seed", "3").unwrap_err().to_string().contains("--seed"));
        }
        for bad in ["x", "-1", "4294967296", "1, 2"] {
            assert_eq!(names(bad).seed(), None, "{bad}");
            assert!(kit(bad).is_err(), "{bad}");
        }
    }
}
