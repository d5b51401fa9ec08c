//! What operators recorded, for people: what was seen, which rule decided and on which facts, what was rejected, what was done.
//!
//! * [`view`]: a trace as what is shown of it, typed;
//! * [`why`]: the facts that a decision rests on, found by asking the core again;
//! * [`words`]: facts and effects in words;
//! * [`text`]: for a terminal;
//! * [`page`], [`html`]: one page for a browser, which needs nothing else.

pub mod html;
pub mod page;
pub mod text;
pub mod view;
pub mod why;
pub mod words;
