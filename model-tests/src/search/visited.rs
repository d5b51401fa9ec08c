//! A set of digests that many threads fill: 16 bytes for each, in tables that are 63 % to 85 % full once they have grown.

use std::sync::Mutex;

/// Tables, so that threads seldom meet and growth copies a small part at a time.
const TABLES: usize = 256;
/// Places of a new table.
const FIRST: usize = 64;

/// Digests that were seen.
pub struct Visited {
    tables: Vec<Mutex<Table>>,
}

struct Table {
    /// 0 is an empty place.
    places: Vec<u128>,
    taken: usize,
}

impl Default for Visited {
    fn default() -> Self {
        let table = || {
            Mutex::new(Table {
                places: vec![0; FIRST],
                taken: 0,
            })
        };
        Self {
            tables: (0..TABLES).map(|_| table()).collect(),
        }
    }
}

impl Visited {
    /// Adds a digest; whether it is new.
    pub fn insert(&self, digest: u128) -> bool {
        self.with(digest, |table, digest| table.insert(digest))
    }

    /// Whether a digest was added.
    pub fn contains(&self, digest: u128) -> bool {
        self.with(digest, |table, digest| table.find(digest).is_err())
    }

    fn with(&self, digest: u128, act: impl FnOnce(&mut Table, u128) -> bool) -> bool {
        let digest = digest.max(1);
        let Some(table) = self.tables.get(digest as usize % TABLES) else {
            return false;
        };
        // A thread that panicked left a table that is whole: it is changed in one assignment.
        let mut table = match table.lock() {
            Ok(table) => table,
            Err(poisoned) => poisoned.into_inner(),
        };
        act(&mut table, digest)
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.sum(|table| table.taken)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all tables.
    pub fn bytes(&self) -> usize {
        self.sum(|table| table.places.capacity() * size_of::<u128>())
    }

    fn sum(&self, of: impl Fn(&Table) -> usize) -> usize {
        let tables = self.tables.iter().filter_map(|table| table.lock().ok());
        tables.map(|table| of(&table)).sum()
    }
}

impl Table {
    fn insert(&mut self, digest: u128) -> bool {
        let Ok(free) = self.find(digest) else {
            return false;
        };
        if let Some(place) = self.places.get_mut(free) {
            *place = digest;
        }
        self.taken += 1;
        if self.taken * 20 > self.places.len() * 17 {
            self.grow();
        }
        true
    }

    /// The place where a digest would go; an error if it is there.
    fn find(&self, digest: u128) -> Result<usize, ()> {
        let count = self.places.len();
        // The high half, scaled to the number of places: that need not be a power of two.
        let mut at = (((digest >> 64) * count as u128) >> 64) as usize;
        loop {
            match self.places.get(at) {
                Some(0) => return Ok(at),
                Some(held) if *held == digest => return Err(()),
                Some(_) => at += 1,
                None => at = 0,
            }
        }
    }

    fn grow(&mut self) {
        let larger = self.places.len() * 4 / 3;
        let places = std::mem::replace(&mut self.places, vec![0; larger]);
        for digest in places.into_iter().filter(|digest| *digest != 0) {
            if let Ok(free) = self.find(digest)
                && let Some(place) = self.places.get_mut(free)
            {
                *place = digest;
            }
        }
    }
}
