//! Applications that are written in Python (`reference_sim.plug_ins.Application`).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

use pepscope_drive::plug_ins::{ApplicationEnds, ApplicationFactory};
use pepscope_path::{Nanoseconds, NEVER};
use pepscope_tcp::{Action, Message, Piece, Protocol, Write};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::simulation::plug_ins::Failures;

/// What one end wrote and the other has not read, oldest first.
type Written = Rc<RefCell<VecDeque<Vec<u8>>>>;

/// One end whose behaviour is a Python object's.
struct PythonApplication {
    /// `None` once it has raised.
    application: Option<Py<PyAny>>,
    to_write: VecDeque<Vec<u8>>,
    wake_up: Nanoseconds,
    is_closed: bool,
    written: Written,
    of_peer: Written,
    count: u64,
    failures: Failures,
}

impl fmt::Debug for PythonApplication {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PythonApplication")
    }
}

impl PythonApplication {
    /// Calls a method, and asks what the application wants.
    fn call(&mut self, now: Nanoseconds, action: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<()>) {
        let Some(application) = &self.application else { return };
        let asked = Python::attach(|py| {
            let application = application.bind(py);
            action(py, application)?;
            application.call_method0("take")?.extract::<(Vec<Vec<u8>>, Option<Nanoseconds>, bool)>()
        });
        match asked {
            Ok((written, wake_up, is_closed)) => {
                self.to_write.extend(written);
                self.wake_up = wake_up.map_or(NEVER, |wake_up| wake_up.max(now + 1));
                self.is_closed = is_closed;
            }
            Err(failure) => {
                (self.application, self.wake_up) = (None, NEVER);
                self.failures.note(failure);
            }
        }
    }
}

impl Protocol for PythonApplication {
    fn handle_connected(&mut self, now: Nanoseconds) {
        self.call(now, |_, application| application.call_method1("on_connected", (now,)).map(drop));
    }

    fn handle_message(&mut self, now: Nanoseconds, _message: Message) {
        let Some(data) = self.of_peer.borrow_mut().pop_front() else { return };
        self.call(now, |py, application| application.call_method1("on_data", (now, PyBytes::new(py, &data))).map(drop));
    }

    fn handle_peer_finished(&mut self, now: Nanoseconds) {
        self.call(now, |_, application| application.call_method1("on_finished", (now,)).map(drop));
    }

    fn handle_timeout(&mut self, now: Nanoseconds) {
        if now >= self.wake_up {
            self.call(now, |py, application| {
                application.call_method1("wake_at", (py.None(),))?; // what it asked for has come
                application.call_method1("on_timer", (now,)).map(drop)
            });
        }
    }

    fn poll_timeout(&self) -> Nanoseconds {
        self.wake_up
    }

    fn poll_action(&mut self, _now: Nanoseconds) -> Option<Action> {
        let Some(data) = self.to_write.pop_front() else { return self.is_closed.then_some(Action::Close) };
        self.count += 1;
        let message = Message { name: format!("write {}", self.count), number: 0, answer_bytes: 0 };
        self.written.borrow_mut().push_back(data.clone());
        Some(Action::Write(Write::new(vec![Piece::Literal(data)], message)))
    }
}

/// Builds both ends by `plug_ins.application(plug_in, settings, seed, name, is_client)`, settings as JSON.
pub(crate) fn application_factory(plug_ins: &Py<PyAny>, failures: &Failures) -> ApplicationFactory {
    let (plug_ins, failures) = (Python::attach(|py| plug_ins.clone_ref(py)), failures.clone());
    ApplicationFactory::new(move |described, seed, name| {
        let settings = described.settings.to_string();
        let build = |is_client: bool, written: &Written, of_peer: &Written| {
            let arguments = (described.plug_in.as_str(), settings.as_str(), seed, name, is_client);
            let built = Python::attach(|py| plug_ins.call_method1(py, "application", arguments));
            let application = built.map_err(|failure| {
                let text = failure.to_string();
                failures.note(failure);
                text
            })?;
            Ok::<_, String>(Box::new(PythonApplication {
                application: Some(application),
                to_write: VecDeque::new(),
                wake_up: NEVER,
                is_closed: false,
                written: written.clone(),
                of_peer: of_peer.clone(),
                count: 0,
                failures: failures.clone(),
            }))
        };
        let [up, down] = [Written::default(), Written::default()];
        Ok(ApplicationEnds { mobile: build(true, &up, &down)?, server: build(false, &down, &up)? })
    })
}
