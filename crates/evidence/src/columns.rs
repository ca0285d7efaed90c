//! Columns whose rows belong to connections.

/// A structure of one vector a column, of one length, and its order by `connection`, which is one of the columns.
macro_rules! by_connection_columns {
    ($(#[$about:meta])* pub struct $columns:ident { $($name:ident: $element:ty,)* }) => {
        $(#[$about])*
        pub struct $columns {
            $(pub $name: Vec<$element>,)*
        }

        impl $columns {
            /// Makes room for so many more rows.
            pub fn reserve(&mut self, rows: usize) {
                $(self.$name.reserve(rows);)*
            }

            /// The same rows by connection; rows of one connection keep their order.
            pub fn by_connection(&mut self) {
                if self.connection.is_sorted() {
                    return;
                }
                let mut order: Vec<usize> = (0..self.connection.len()).collect();
                order.sort_by_key(|&row| self.connection[row]);
                $(self.$name = order.iter().map(|&row| self.$name[row]).collect();)*
            }
        }
    };
}
pub(crate) use by_connection_columns;
