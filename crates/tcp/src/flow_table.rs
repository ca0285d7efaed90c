//! A value for each flow, found by the flow's number without hashing.

/// Flows that one run can have: what bounds the table, because a flow's number is its place.
pub const FLOW_LIMIT: u32 = 1 << 20;

/// One `T` a flow.
#[derive(Clone, Debug)]
pub(crate) struct FlowTable<T> {
    places: Vec<Option<T>>,
}

impl<T> Default for FlowTable<T> {
    fn default() -> Self {
        Self { places: Vec::new() }
    }
}

impl<T> FlowTable<T> {
    #[inline]
    pub(crate) fn get(&self, flow: u32) -> Option<&T> {
        self.places.get(flow as usize)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, flow: u32) -> Option<&mut T> {
        self.places.get_mut(flow as usize)?.as_mut()
    }

    /// The value for `flow`, made by `make` if there is none yet; `None` from [`FLOW_LIMIT`] on.
    #[inline]
    pub(crate) fn get_or_make(&mut self, flow: u32, make: impl FnOnce() -> T) -> Option<&mut T> {
        if flow >= FLOW_LIMIT {
            return None;
        }
        let place = flow as usize;
        if place >= self.places.len() {
            self.places.resize_with(place + 1, || None);
        }
        Some(self.places[place].get_or_insert_with(make))
    }
}

#[cfg(test)]
mod tests {
    use super::{FlowTable, FLOW_LIMIT};

    #[test]
    fn each_flow_keeps_its_own() {
        let mut table = FlowTable::default();
        assert_eq!(table.get_or_make(5, || 50), Some(&mut 50));
        assert_eq!(table.get_or_make(5, || 51), Some(&mut 50));
        assert_eq!((table.get(5), table.get(4), table.get(6)), (Some(&50), None, None));
    }

    #[test]
    fn the_table_does_not_grow_with_absurd_numbers() {
        let mut table = FlowTable::default();
        assert_eq!(table.get_or_make(FLOW_LIMIT, || 1), None);
        assert_eq!(table.get(u32::MAX), None);
    }
}
