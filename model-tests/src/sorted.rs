//! Maps and sets of a few entries that are copied often: sorted lists, whose memory is used again.

/// A map.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Map<K, V>(Vec<(K, V)>);

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Copy, V: Copy> Clone for Map<K, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }

    fn clone_from(&mut self, source: &Self) {
        self.0.clone_from(&source.0);
    }
}

impl<K: Ord + Copy, V> Map<K, V> {
    /// An empty one.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    fn place(&self, key: &K) -> Result<usize, usize> {
        self.0.binary_search_by_key(key, |(key, _)| *key)
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        let at = self.place(key).ok()?;
        self.0.get(at).map(|(_, value)| value)
    }

    /// Whether it has a key.
    pub fn contains_key(&self, key: &K) -> bool {
        self.place(key).is_ok()
    }

    /// Sets the value of a key. Answers the value before.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.place(&key) {
            Ok(at) => {
                let entry = self.0.get_mut(at)?;
                Some(std::mem::replace(&mut entry.1, value))
            }
            Err(at) => {
                self.0.insert(at, (key, value));
                None
            }
        }
    }

    /// Takes a key out. Answers its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let at = self.place(key).ok()?;
        Some(self.0.remove(at).1)
    }

    /// Takes all keys out.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// How many keys.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keys with values, in order.
    pub fn iter(&self) -> impl Iterator<Item = &(K, V)> {
        self.0.iter()
    }

    /// Values in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }
}

/// A set.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Set<K>(Map<K, ()>);

impl<K> Default for Set<K> {
    fn default() -> Self {
        Self(Map::default())
    }
}

impl<K: Copy> Clone for Set<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }

    fn clone_from(&mut self, source: &Self) {
        self.0.clone_from(&source.0);
    }
}

impl<K: Ord + Copy> Set<K> {
    /// An empty one.
    pub const fn new() -> Self {
        Self(Map::new())
    }

    /// Whether a key is in it.
    pub fn contains(&self, key: &K) -> bool {
        self.0.contains_key(key)
    }

    /// Whether it is empty.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a key. Whether it is new.
    pub fn insert(&mut self, key: K) -> bool {
        self.0.insert(key, ()).is_none()
    }
}

impl<K: Ord + Copy> Extend<K> for Set<K> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        for key in keys {
            self.insert(key);
        }
    }
}
