use std::thread::available_parallelism;

use pyo3::pyfunction;

#[pyfunction]
pub fn usable_processors() -> usize {
    available_parallelism().map_or(1, usize::from)
}
