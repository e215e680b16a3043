//! From the changes of one key to who held it from when to when, and how that ended.

use super::super::history::{At, Change, Written};
use super::CLOSE;

/// One claim from its beginning to its end.
#[derive(Clone, Debug)]
pub struct Holding {
    pub token: String,
    pub from: At,
    /// When the lease ends, or ended.
    pub until: At,
    pub promoted: Option<At>,
    pub end: End,
    /// The latest moment at which it may still have held.
    pub held_until: At,
}

/// How a claim ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It had not ended with the run.
    Open,
    /// The event was recorded as delivered, by whomever.
    Done,
    /// The event was recorded as unknown.
    Unknown,
    /// Its owner released it.
    Freed,
    /// Its lease ended, or its owner released it around that time.
    Lapsed,
}

/// What became of one key.
#[derive(Clone, Debug, Default)]
pub struct Story {
    pub holdings: Vec<Holding>,
    /// When the event was first recorded as delivered, at the latest.
    pub recorded: Option<At>,
    /// Whether it was recorded as unknown.
    pub unknown: bool,
    /// What must never happen to a key.
    pub broken: Vec<(At, String)>,
}

impl Story {
    pub fn of(changes: &[&Change]) -> Self {
        let mut story = Self::default();
        for change in changes {
            story.take(change);
        }
        story
    }

    fn take(&mut self, change: &Change) {
        let settled = self.recorded.is_some() || self.unknown;
        if settled && change.what != Written::Done {
            self.broken.push((change.latest, format!("{:?} over a record", change.what)));
        }
        let open = self.holdings.last_mut().filter(|holding| holding.end == End::Open);
        match &change.what {
            Written::Claimed { token, until } => {
                if let Some(open) = open {
                    if open.until > change.latest + CLOSE {
                        self.broken.push((change.latest, "a claim over one that held".to_owned()));
                    }
                    open.ends(End::Lapsed, open.until);
                }
                let holding = Holding {
                    token: token.clone(),
                    from: change.earliest,
                    until: *until,
                    promoted: None,
                    end: End::Open,
                    held_until: At::MAX,
                };
                self.holdings.push(holding);
            }
            Written::Sending { token, until } => match open.filter(|open| open.token == *token) {
                Some(open) => {
                    open.promoted.get_or_insert(change.earliest);
                    open.until = *until;
                }
                None => self.broken.push((change.latest, "a promotion without a claim".to_owned())),
            },
            Written::Renewed { until, sending_until } => {
                if let Some(open) = open {
                    open.until = if open.promoted.is_some() { *sending_until } else { *until };
                }
            }
            Written::Done => {
                if let Some(open) = open {
                    open.ends(End::Done, change.latest);
                }
                self.recorded.get_or_insert(change.latest);
            }
            Written::Unknown => {
                if let Some(open) = open {
                    open.ends(End::Unknown, change.latest);
                }
                self.unknown = true;
            }
            Written::Deleted => {
                if let Some(open) = open {
                    let freed = change.latest + CLOSE < open.until;
                    open.ends(if freed { End::Freed } else { End::Lapsed }, change.latest);
                }
            }
        }
    }
}

impl Holding {
    fn ends(&mut self, end: End, at: At) {
        self.end = end;
        self.held_until = at.min(self.until);
    }

    /// The latest moment at which it may have held, whether or not anybody has noticed its end.
    pub fn last_moment(&self) -> At {
        self.held_until.min(self.until)
    }
}
