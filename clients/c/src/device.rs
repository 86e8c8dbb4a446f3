//! The device budget and the outbox, over a file. `ldp_budget.h` describes the functions.

use std::ffi::{c_char, c_int, CStr};
use std::sync::Mutex;
use std::time::SystemTime;

use ldp_budget::{Answer, Client, Device, Entry, Error, FileStorage, Limits, Result, SystemStream};

use crate::{bytes, failed, freed, handed, write};

pub struct Opened(Mutex<Device<FileStorage>>);

/// A text that ends with a NUL.
///
/// # Safety
/// `text` is null, or points to bytes with a NUL that live as long as the result is used.
unsafe fn said<'a>(text: *const c_char, what: &str) -> Result<&'a str> {
    // SAFETY: the caller's promise.
    let text = if text.is_null() { None } else { unsafe { CStr::from_ptr(text) }.to_str().ok() };
    text.ok_or_else(|| Error::new(format!("the {what} is missing, or not in UTF-8")))
}

/// # Safety
/// As `ldp_budget.h` says.
#[no_mangle]
pub unsafe extern "C" fn ldp_device_open(
    path: *const c_char,
    lifetime: *const c_char,
    day: *const c_char,
    why: *mut c_char,
    why_size: usize,
) -> *mut Opened {
    // SAFETY: the caller's promises, for all pointers of this function.
    unsafe {
        let open = || {
            let day = if day.is_null() { None } else { Some(said(day, "limit of a day")?) };
            let limits = Limits { lifetime: said(lifetime, "limit of the lifetime")?, day };
            let storage = FileStorage::new(said(path, "path")?);
            Device::open(storage, limits, SystemTime::now(), &mut SystemStream::default())
        };
        handed(open().map(|device| Opened(Mutex::new(device))), why, why_size)
    }
}

/// # Safety
/// `device` is null, or from `ldp_device_open` and not freed.
#[no_mangle]
pub unsafe extern "C" fn ldp_device_free(device: *mut Opened) {
    // SAFETY: the caller's promise.
    unsafe { freed(device) }
}

/// # Safety
/// `device` is null, or from `ldp_device_open` and not freed.
#[no_mangle]
pub unsafe extern "C" fn ldp_device_is_fresh(device: *const Opened) -> c_int {
    // SAFETY: the caller's promise.
    let device = unsafe { device.as_ref() }.and_then(|device| device.0.lock().ok());
    c_int::from(device.is_some_and(|device| device.fresh))
}

/// What a caller passes with every answer.
struct Call {
    device: *const Opened,
    client: *const Client,
    key: *const c_char,
    report: *mut u8,
    label: *mut c_char,
    why: *mut c_char,
    why_size: usize,
}

/// # Safety
/// As `ldp_budget.h` says.
unsafe fn draw(call: &Call, answer: Result<Answer<'_>>) -> c_int {
    // SAFETY: the caller's promises, for all pointers of this function.
    unsafe {
        let entry = || -> Result<Entry> {
            let (Some(device), Some(client), false) = (call.device.as_ref(), call.client.as_ref(), call.report.is_null()) else {
                return Err(Error::new("the device, the client or the report is NULL"));
            };
            let (key, answer) = (said(call.key, "key")?, answer?);
            let mut device = device.0.lock().map_err(|_| Error::new("the device failed before"))?;
            let entry = device.draw(key, client, &answer, SystemTime::now(), &mut SystemStream::default())?;
            // The report of another definition may be longer than the caller's buffer.
            if client.digest() != entry.digest || entry.report.as_ref().is_some_and(|report| report.len() != client.report_size()) {
                return Err(Error::new("a report of another definition has this key"));
            }
            Ok(entry)
        };
        match entry() {
            Ok(Entry { report: Some(report), label, .. }) => {
                std::ptr::copy_nonoverlapping(report.as_ptr(), call.report, report.len());
                write(label.as_deref().unwrap_or(""), call.label, 33);
                0
            }
            Ok(_) => 1,
            Err(error) => {
                let code = failed(&error, call.why, call.why_size);
                if error.is_over_budget() { -2 } else { code }
            }
        }
    }
}

/// # Safety
/// As `ldp_budget.h` says.
#[no_mangle]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn ldp_device_text(
    device: *const Opened,
    client: *const Client,
    key: *const c_char,
    answer: *const u8,
    size: usize,
    report: *mut u8,
    label: *mut c_char,
    why: *mut c_char,
    why_size: usize,
) -> c_int {
    // SAFETY: the caller's promises.
    unsafe {
        let text = std::str::from_utf8(bytes(answer, size)).map_err(|_| Error::new("the answer is not in UTF-8"));
        draw(&Call { device, client, key, report, label, why, why_size }, text.map(Answer::Text))
    }
}

/// # Safety
/// As `ldp_budget.h` says.
#[no_mangle]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn ldp_device_integer(
    device: *const Opened,
    client: *const Client,
    key: *const c_char,
    answer: u64,
    report: *mut u8,
    label: *mut c_char,
    why: *mut c_char,
    why_size: usize,
) -> c_int {
    let answer = Ok(Answer::Integer(i128::from(answer).into()));
    // SAFETY: the caller's promises.
    unsafe { draw(&Call { device, client, key, report, label, why, why_size }, answer) }
}

/// # Safety
/// As `ldp_budget.h` says.
#[no_mangle]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn ldp_device_number(
    device: *const Opened,
    client: *const Client,
    key: *const c_char,
    answer: f64,
    report: *mut u8,
    label: *mut c_char,
    why: *mut c_char,
    why_size: usize,
) -> c_int {
    // SAFETY: the caller's promises.
    unsafe { draw(&Call { device, client, key, report, label, why, why_size }, Ok(Answer::Number(answer))) }
}

/// # Safety
/// As `ldp_budget.h` says.
#[no_mangle]
pub unsafe extern "C" fn ldp_device_settle(device: *const Opened, key: *const c_char, why: *mut c_char, why_size: usize) -> c_int {
    // SAFETY: the caller's promises, for all pointers of this function.
    unsafe {
        let settle = || -> Result<()> {
            let device = device.as_ref().ok_or_else(|| Error::new("the device is NULL"))?;
            let mut device = device.0.lock().map_err(|_| Error::new("the device failed before"))?;
            device.settle(said(key, "key")?)
        };
        match settle() {
            Ok(()) => 0,
            Err(error) => failed(&error, why, why_size),
        }
    }
}
