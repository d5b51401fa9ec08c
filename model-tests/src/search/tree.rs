//! The shortest way to every world that was seen. Of each it is kept which of the events enabled in the world before it leads
//! there, and how many new worlds it leads to itself: two bytes. Worlds are made again by doing these events.

use crate::actions::Action;
use crate::operator::Brain;
use crate::world::World;

use super::scope::{Budget, Scope};

/// Worlds of which this many are kept, whatever else there is.
const FEW: usize = 256;
/// Of so many worlds that were seen, one is kept itself.
const ONE_OF: u64 = 100;

/// Worlds that are equally far from the start, in the order of the worlds that lead to them.
#[derive(Default)]
struct Layer {
    /// Which of the events enabled in the world before it.
    events: Vec<u8>,
    /// How many worlds of the next layer it leads to.
    fresh: Vec<u8>,
}

impl Layer {
    fn keep(&mut self, which: &[bool]) {
        for list in [&mut self.events, &mut self.fresh] {
            let mut which = which.iter();
            list.retain(|_| which.next().copied().unwrap_or(false));
            list.shrink_to_fit();
        }
    }
}

/// All layers, and the worlds of one of them.
pub struct Tree {
    layers: Vec<Layer>,
    base: usize,
    worlds: Vec<(World, Budget)>,
    /// The world at the start.
    start: World,
}

/// A part of the base with everything that it leads to: where it begins in each layer from the base on, and how many worlds of
/// the base it has.
#[derive(Clone, Debug)]
pub struct Piece {
    number: usize,
    begins: Vec<usize>,
    count: usize,
}

/// What one piece adds to the tree.
pub struct Grown {
    number: usize,
    events: Vec<u8>,
    fresh: Vec<u8>,
}

impl Grown {
    /// Nothing yet.
    pub const fn new(piece: &Piece) -> Self {
        Self {
            number: piece.number,
            events: Vec::new(),
            fresh: Vec::new(),
        }
    }

    /// A new world, after the event of this index.
    pub fn push(&mut self, index: usize) {
        self.events.push(u8::try_from(index).unwrap_or(u8::MAX));
    }

    /// The world that was left led to so many new ones.
    pub fn close(&mut self, fresh: u64) {
        self.fresh.push(u8::try_from(fresh).unwrap_or(u8::MAX));
    }
}

impl Tree {
    /// The start.
    pub fn new(start: World) -> Self {
        Self {
            layers: vec![Layer {
                events: vec![0],
                fresh: Vec::new(),
            }],
            base: 0,
            worlds: vec![(start.clone(), Budget::default())],
            start,
        }
    }

    /// The world at the start.
    pub const fn start(&self) -> &World {
        &self.start
    }

    /// Number of the last layer.
    pub fn depth(&self) -> usize {
        self.layers.len() - 1
    }

    /// Worlds in the last layer.
    pub fn last_layer(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.events.len())
    }

    /// Bytes of all ways, the worlds of the base left out.
    pub fn bytes(&self) -> usize {
        let of = |layer: &Layer| layer.events.capacity() + layer.fresh.capacity();
        self.layers.iter().map(of).sum()
    }

    /// A later layer that is small enough for its worlds to be kept themselves.
    pub fn better_base(&self, states: u64) -> Option<usize> {
        let most = FEW.max(usize::try_from(states / ONE_OF).unwrap_or(usize::MAX));
        let small = |depth: &usize| {
            self.layers
                .get(*depth)
                .is_some_and(|layer| layer.events.len() <= most)
        };
        (self.base + 1..self.layers.len()).rev().find(small)
    }

    /// Keeps the worlds of another layer.
    pub fn set_base(&mut self, base: usize, worlds: Vec<(World, Budget)>) {
        self.base = base;
        self.worlds = worlds;
    }

    /// The base in about so many pieces.
    pub fn pieces(&self, about: usize) -> Vec<Piece> {
        let size = self.worlds.len().div_ceil(about.max(1)).max(1);
        let mut begins = vec![0; self.layers.len() - self.base];
        let mut pieces = Vec::new();
        for (number, first) in (0..self.worlds.len()).step_by(size).enumerate() {
            let count = size.min(self.worlds.len() - first);
            pieces.push(Piece {
                number,
                begins: begins.clone(),
                count,
            });
            let mut ends = count;
            for (begin, layer) in begins.iter_mut().zip(self.layers.iter().skip(self.base)) {
                let within = layer.fresh.get(*begin..*begin + ends).unwrap_or_default();
                *begin += ends;
                ends = within.iter().map(|fresh| usize::from(*fresh)).sum();
            }
        }
        pieces
    }

    /// Adds a layer. Answers how many worlds it has.
    pub fn grow(&mut self, mut grown: Vec<Grown>) -> usize {
        grown.sort_by_key(|piece| piece.number);
        let sum = |of: fn(&Grown) -> usize| grown.iter().map(of).sum();
        let mut layer = Layer {
            events: Vec::with_capacity(sum(|piece| piece.events.len())),
            fresh: Vec::new(),
        };
        let mut fresh = Vec::with_capacity(sum(|piece| piece.fresh.len()));
        for piece in grown {
            layer.events.extend(piece.events);
            fresh.extend(piece.fresh);
        }
        if let Some(last) = self.layers.last_mut() {
            last.fresh = fresh;
        }
        let count = layer.events.len();
        if count > 0 {
            self.layers.push(layer);
            self.prune();
        }
        count
    }

    /// Forgets the worlds that lead to none of the last layer: no way goes through them any more.
    fn prune(&mut self) {
        let mut leads_on: Option<Vec<bool>> = None;
        for depth in (0..self.layers.len() - 1).rev() {
            let Some(layer) = self.layers.get_mut(depth) else {
                return;
            };
            if let Some(leads_on) = leads_on.take() {
                let mut next = leads_on.into_iter();
                for fresh in &mut layer.fresh {
                    let left = next.by_ref().take(usize::from(*fresh)).filter(|it| *it);
                    *fresh = u8::try_from(left.count()).unwrap_or(u8::MAX);
                }
            }
            let own: Vec<bool> = layer.fresh.iter().map(|fresh| *fresh > 0).collect();
            if own.iter().all(|leads_on| *leads_on) {
                return;
            }
            layer.keep(&own);
            if depth == self.base {
                let mut own = own.iter();
                self.worlds.retain(|_| own.next().copied().unwrap_or(false));
            }
            leads_on = Some(own);
        }
    }

    /// Events on the way to a world of the last layer.
    pub fn farthest(&self, scope: &Scope, brain: Brain) -> Vec<Action> {
        self.events(&self.indices(self.depth(), 0), scope, brain)
    }

    /// The events of these indices, from the start.
    fn events(&self, indices: &[u8], scope: &Scope, brain: Brain) -> Vec<Action> {
        let mut world = self.start.clone();
        let (mut spent, mut moves, mut way) = (Budget::default(), Vec::new(), Vec::new());
        for index in indices {
            scope.enabled(&world, spent, &mut moves);
            let Some((action, then)) = moves.get(usize::from(*index)).copied() else {
                break;
            };
            // It did not break anything when it was tried first.
            let _ = world.act(action, brain, None);
            spent = then;
            way.push(action);
        }
        way
    }

    /// Indices of the events that lead to a world of a layer.
    fn indices(&self, mut depth: usize, mut at: usize) -> Vec<u8> {
        let mut way = Vec::new();
        while let (Some(layer), Some(before)) = (
            self.layers.get(depth),
            depth.checked_sub(1).and_then(|d| self.layers.get(d)),
        ) {
            way.extend(layer.events.get(at));
            let mut ends = 0;
            let parent = before.fresh.iter().position(|fresh| {
                ends += usize::from(*fresh);
                ends > at
            });
            at = parent.unwrap_or(0);
            depth -= 1;
        }
        way.reverse();
        way
    }
}

/// Goes through a piece of the base and all that it leads to.
pub struct Walker<'a> {
    tree: &'a Tree,
    scope: &'a Scope,
    brain: Brain,
    first: usize,
    count: usize,
    /// Where it is in each layer from the base on.
    at: Vec<usize>,
    /// The world in each layer, what is spent there, and what may happen.
    worlds: Vec<(World, Budget)>,
    moves: Vec<Vec<(Action, Budget)>>,
    /// The world of the base that it comes from.
    root: usize,
}

impl<'a> Walker<'a> {
    /// At the beginning of a piece.
    pub fn new(tree: &'a Tree, piece: &Piece, scope: &'a Scope, brain: Brain) -> Self {
        let height = piece.begins.len();
        let first = piece.begins.first().copied().unwrap_or(0);
        Self {
            tree,
            scope,
            brain,
            first,
            count: piece.count,
            at: piece.begins.clone(),
            worlds: vec![(tree.start.clone(), Budget::default()); height],
            moves: vec![Vec::new(); height],
            root: first,
        }
    }

    /// Comes to every world of the piece in the layer `depth`, in order.
    pub fn each<E>(
        &mut self,
        depth: usize,
        mut visit: impl FnMut(&World, Budget, &mut Vec<(Action, Budget)>) -> Result<(), E>,
    ) -> Result<(), E> {
        let height = depth - self.tree.base;
        for root in self.first..self.first + self.count {
            self.root = root;
            if let (Some(place), Some(world)) =
                (self.worlds.first_mut(), self.tree.worlds.get(root))
            {
                place.0.clone_from(&world.0);
                place.1 = world.1;
            }
            self.descend(0, height, &mut visit)?;
        }
        Ok(())
    }

    fn descend<E>(
        &mut self,
        height: usize,
        to: usize,
        visit: &mut impl FnMut(&World, Budget, &mut Vec<(Action, Budget)>) -> Result<(), E>,
    ) -> Result<(), E> {
        let own = self.advance(height);
        let (Some((world, spent)), Some(moves)) =
            (self.worlds.get(height), self.moves.get_mut(height))
        else {
            return Ok(());
        };
        if height == to {
            return visit(world, *spent, moves);
        }
        let layer = self.tree.layers.get(self.tree.base + height);
        let fresh = layer.and_then(|layer| layer.fresh.get(own).copied());
        let fresh = fresh.unwrap_or(0);
        if fresh > 0 {
            self.scope.enabled(world, *spent, moves);
        }
        for _ in 0..fresh {
            self.follow(height);
            self.descend(height + 1, to, visit)?;
        }
        Ok(())
    }

    /// The place in a layer, which is left.
    fn advance(&mut self, height: usize) -> usize {
        self.at.get_mut(height).map_or(0, |at| {
            *at += 1;
            *at - 1
        })
    }

    /// Makes the next world of the layer above `height`.
    fn follow(&mut self, height: usize) {
        let index = self.at.get(height + 1).and_then(|at| {
            let layer = self.tree.layers.get(self.tree.base + height + 1)?;
            layer.events.get(*at).copied()
        });
        let moves = self.moves.get(height);
        let found = index.and_then(|index| moves?.get(usize::from(index)).copied());
        let Some((action, spent)) = found else { return };
        let (below, above) = self.worlds.split_at_mut(height + 1);
        if let (Some((from, _)), Some(to)) = (below.last(), above.first_mut()) {
            to.0.clone_from(from);
            to.1 = spent;
            // It did not break anything when it was tried first.
            let _ = to.0.act(action, self.brain, None);
        }
    }

    /// Events from the start to the world at which the walk is, and one more.
    pub fn way(&self, last: Action) -> Vec<Action> {
        let mut indices = self.tree.indices(self.tree.base, self.root);
        for (height, at) in self.at.iter().enumerate().skip(1) {
            let layer = self.tree.layers.get(self.tree.base + height);
            indices.extend(layer.and_then(|layer| layer.events.get(at.saturating_sub(1))));
        }
        let mut way = self.tree.events(&indices, self.scope, self.brain);
        way.push(last);
        way
    }
}
