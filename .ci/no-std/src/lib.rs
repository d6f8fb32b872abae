//! A program without the standard library: a panic handler and an allocator of its own, and the core linked in. If any crate
//! below `mcp-proto` pulled in `std`, this would define the panic handler a second time and not compile.
#![no_std]

use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;
use core::ptr::null_mut;

use mcp_proto as _;

/// A device would bring its heap; linking needs only that there is one.
struct NoHeap;

// SAFETY: a null pointer tells the caller that the allocation failed; nothing is ever handed out, so nothing is freed.
unsafe impl GlobalAlloc for NoHeap {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static HEAP: NoHeap = NoHeap;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
