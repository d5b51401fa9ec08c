//! What differs between two looks although nothing happens.

use super::{Fresh, Kept, Known, Link, Observation, Offset, Role, Tick};

impl Observation {
    /// The same without time stamps and numbers that always move: two looks between which nothing happened are equal so. It tells
    /// whether a pass is worth writing down.
    #[must_use]
    pub fn settled(&self) -> Self {
        let mut seen = self.clone();
        seen.primary_offset = seen.primary_offset.map(|_| Offset(0));
        for pod in &mut seen.pods {
            if let Known::Seen(stamped)
            | Known::Maybe {
                last: Some(stamped),
                ..
            } = &mut pod.server
            {
                stamped.at = Tick(0);
                stamped.value.offset = Offset(0);
                stamped.value.uptime = 0;
                stamped.value.keys = 0;
                if let Role::Replica {
                    link: Link::Down { seconds },
                    ..
                } = &mut stamped.value.role
                {
                    *seconds = 0;
                }
            }
        }
        let reaches = seen.pods.iter_mut().filter_map(|pod| pod.reach.as_mut());
        let former = seen.former.iter_mut().map(|former| &mut former.reach);
        for reach in reaches.chain(former) {
            if let Fresh::Refused { at } | Fresh::TimedOut { at } = &mut reach.fresh {
                *at = Tick(0);
            }
            if let Kept::Closed { at } | Kept::TimedOut { at } = &mut reach.kept {
                *at = Tick(0);
            }
        }
        seen
    }
}
