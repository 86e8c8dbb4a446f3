//! The C interface; `ldp_budget.h` describes it. All unsafe code of the client is in this crate.

mod device;

use std::ffi::{c_char, c_int, CStr};

use ldp_budget::{Answer, Client, Drawn, Error, Result, SystemStream};

/// The bytes at a pointer; none where it is null.
///
/// # Safety
/// `data` is null, or points to `size` bytes that live as long as the result is used.
unsafe fn bytes<'a>(data: *const u8, size: usize) -> &'a [u8] {
    if data.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise, passed on from C.
    unsafe { std::slice::from_raw_parts(data, size) }
}

/// Write a text that ends with a NUL, cut to a buffer.
///
/// # Safety
/// `out` is null, or points to `size` bytes.
unsafe fn write(text: &str, out: *mut c_char, size: usize) {
    if out.is_null() || size == 0 {
        return;
    }
    let count = text.len().min(size - 1);
    // SAFETY: `count` bytes and a NUL are at most the `size` bytes that the caller promises.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), out.cast::<u8>(), count);
        *out.add(count) = 0;
    }
}

/// Write why a call failed, and return -1.
///
/// # Safety
/// As for `write`.
unsafe fn failed(error: &Error, why: *mut c_char, why_size: usize) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { write(&error.to_string(), why, why_size) };
    -1
}

/// A pointer to what was made, to be freed by C; null, with the reason in `why`, if nothing was.
///
/// # Safety
/// As for `write`.
unsafe fn handed<T>(made: Result<T>, why: *mut c_char, why_size: usize) -> *mut T {
    match made {
        Ok(made) => Box::into_raw(Box::new(made)),
        Err(error) => {
            // SAFETY: the caller's promise.
            unsafe { failed(&error, why, why_size) };
            std::ptr::null_mut()
        }
    }
}

/// Give back what `handed` returned.
///
/// # Safety
/// `made` is null, or from `handed` and not freed.
unsafe fn freed<T>(made: *mut T) {
    if !made.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(made) });
    }
}

/// # Safety
/// As `ldp_budget.h` says.
#[no_mangle]
pub unsafe extern "C" fn ldp_client_new(
    definition: *const u8,
    size: usize,
    digest: *const c_char,
    why: *mut c_char,
    why_size: usize,
) -> *mut Client {
    // SAFETY: the caller's promise.
    let (definition, digest) = unsafe {
        let digest = if digest.is_null() { None } else { CStr::from_ptr(digest).to_str().ok() };
        (std::str::from_utf8(bytes(definition, size)), digest)
    };
    let made = match (definition, digest) {
        (Ok(definition), Some(digest)) => Client::new(definition, digest),
        (Err(_), _) => Err(Error::new("the definition is not in UTF-8")),
        (_, None) => Err(Error::new("the digest is missing, or not in UTF-8")),
    };
    // SAFETY: the caller's promise.
    unsafe { handed(made, why, why_size) }
}

/// # Safety
/// `client` is null, or from `ldp_client_new` and not freed.
#[no_mangle]
pub unsafe extern "C" fn ldp_client_free(client: *mut Client) {
    // SAFETY: the caller's promise.
    unsafe { freed(client) }
}

/// # Safety
/// `client` is null, or from `ldp_client_new` and not freed.
#[no_mangle]
pub unsafe extern "C" fn ldp_client_report_size(client: *const Client) -> usize {
    // SAFETY: the caller's promise.
    unsafe { client.as_ref() }.map_or(0, Client::report_size)
}

/// # Safety
/// `client` is null, or from `ldp_client_new` and not freed.
#[no_mangle]
pub unsafe extern "C" fn ldp_client_memoizes(client: *const Client) -> c_int {
    // SAFETY: the caller's promise.
    c_int::from(unsafe { client.as_ref() }.is_some_and(Client::memoises))
}

/// # Safety
/// `client` is null, or from `ldp_client_new` and not freed.
#[no_mangle]
pub unsafe extern "C" fn ldp_client_sends_label(client: *const Client) -> c_int {
    // SAFETY: the caller's promise.
    c_int::from(unsafe { client.as_ref() }.is_some_and(Client::sends_label))
}

/// What a caller passes with every answer.
struct Call {
    secret: *const u8,
    secret_size: usize,
    report: *mut u8,
    label: *mut c_char,
    why: *mut c_char,
    why_size: usize,
}

/// # Safety
/// As `ldp_budget.h` says.
unsafe fn randomize(client: *const Client, answer: Result<Answer<'_>>, call: &Call) -> c_int {
    // SAFETY: the caller's promises, for all pointers of this function.
    unsafe {
        let secret = (!call.secret.is_null()).then(|| bytes(call.secret, call.secret_size));
        let drawn: Result<Drawn> = match (client.as_ref(), answer) {
            (Some(client), Ok(answer)) if !call.report.is_null() => {
                client.randomize(&answer, secret, &mut SystemStream::default())
            }
            (_, Err(error)) => Err(error),
            _ => Err(Error::new("the client or the report is NULL")),
        };
        match drawn {
            Ok(drawn) => {
                std::ptr::copy_nonoverlapping(drawn.report.as_ptr(), call.report, drawn.report.len());
                write(drawn.label.as_deref().unwrap_or(""), call.label, 33);
                0
            }
            Err(error) => failed(&error, call.why, call.why_size),
        }
    }
}

/// # Safety
/// As `ldp_budget.h` says.
#[no_mangle]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn ldp_client_text(
    client: *const Client,
    answer: *const u8,
    size: usize,
    secret: *const u8,
    secret_size: usize,
    report: *mut u8,
    label: *mut c_char,
    why: *mut c_char,
    why_size: usize,
) -> c_int {
    // SAFETY: the caller's promises.
    unsafe {
        let text = std::str::from_utf8(bytes(answer, size)).map_err(|_| Error::new("the answer is not in UTF-8"));
        randomize(client, text.map(Answer::Text), &Call { secret, secret_size, report, label, why, why_size })
    }
}

/// # Safety
/// As `ldp_budget.h` says.
#[no_mangle]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn ldp_client_integer(
    client: *const Client,
    answer: u64,
    secret: *const u8,
    secret_size: usize,
    report: *mut u8,
    label: *mut c_char,
    why: *mut c_char,
    why_size: usize,
) -> c_int {
    let answer = Ok(Answer::Integer(i128::from(answer).into()));
    // SAFETY: the caller's promises.
    unsafe { randomize(client, answer, &Call { secret, secret_size, report, label, why, why_size }) }
}

/// # Safety
/// As `ldp_budget.h` says.
#[no_mangle]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn ldp_client_number(
    client: *const Client,
    answer: f64,
    secret: *const u8,
    secret_size: usize,
    report: *mut u8,
    label: *mut c_char,
    why: *mut c_char,
    why_size: usize,
) -> c_int {
    // SAFETY: the caller's promises.
    unsafe { randomize(client, Ok(Answer::Number(answer)), &Call { secret, secret_size, report, label, why, why_size }) }
}
