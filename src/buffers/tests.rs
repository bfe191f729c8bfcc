use std::thread;

use super::*;

fn kept(buffers: &Buffers) -> usize {
    buffers.lock().kept_bytes
}

fn free_pieces(buffers: &Buffers) -> usize {
    buffers.lock().slabs.values().map(Vec::len).sum()
}

#[test]
fn lengths_are_divided_without_much_waste() {
    let mib = 1 << 20;
    for (len, expected) in [
        (0, None),
        (SHORTEST - 1, None),
        (SHORTEST, Some((SHORTEST, 128))),
        (40_000, Some((40 << 10, 51))),
        (64 << 10, Some((64 << 10, 32))),
        (mib, Some((mib, 2))),
        (mib - 4, Some((mib, 2))),
        // Half a slab would go unused.
        (mib + 1, None),
        (2 * mib, Some((2 * mib, 1))),
        (2 * mib + 1, Some((2 * mib + (64 << 10), 1))),
        (5 * mib, Some((5 * mib, 1))),
        (usize::MAX, None),
    ] {
        assert_eq!(division(len), expected, "{len}");
    }
    for len in (1..3 * mib).step_by(997) {
        if let Some((piece, n)) = division(len) {
            assert!(
                piece >= len && piece - len <= (len / 8).max((64 << 10) - 1),
                "{len}"
            );
            assert_eq!(piece % slab::page_bytes(), 0, "{len}");
            assert!(n == 1 || piece * n <= HUGE_PAGE_BYTES);
        }
    }
}

#[test]
fn buffers_do_not_overlap_and_begin_as_zeros() {
    let buffers = Arc::new(Buffers::default());
    let mut held: Vec<Buffer> = (0..100).map(|_| buffers.take(300_000).unwrap()).collect();
    for (n, buffer) in held.iter_mut().enumerate() {
        assert!(buffer.iter().all(|&byte| byte == 0));
        buffer.fill(u8::try_from(n).unwrap() + 1);
    }
    for (n, buffer) in held.iter().enumerate() {
        let mine = u8::try_from(n).unwrap() + 1;
        assert_eq!(buffer.len(), 300_000);
        assert!(buffer.iter().all(|&byte| byte == mine));
    }
}

#[test]
fn free_pieces_are_used_again() {
    let buffers = Arc::new(Buffers::default());
    let address = |buffer: &Buffer| buffer.as_ptr().addr();
    for len in [16 << 10, 64 << 10, 1 << 20, 3 << 20] {
        let first = buffers.take(len).unwrap();
        let at = address(&first);
        drop(first);
        assert_eq!(address(&buffers.take(len).unwrap()), at, "{len}");
    }
}

#[test]
fn free_memory_is_bounded_and_slabs_go_away() {
    let buffers = Arc::new(Buffers::default());
    let mut held: Vec<Buffer> = (0..64).map(|_| buffers.take(1 << 20).unwrap()).collect();
    // One piece of each pair is dropped, so that each slab has a user.
    let mut n = 0;
    held.retain(|_| {
        n += 1;
        n % 2 == 0
    });
    assert_eq!(kept(&buffers), KEPT_BYTES);
    assert_eq!(free_pieces(&buffers), 32);
    // Pieces that were returned can be used again, too.
    held.extend((0..32).map(|_| buffers.take(1 << 20).unwrap()));
    assert_eq!((kept(&buffers), free_pieces(&buffers)), (0, 0));
    for buffer in &mut held {
        buffer.fill(1);
    }
    drop(held);
    assert!(kept(&buffers) <= KEPT_BYTES);
    assert_eq!(
        free_pieces(&buffers),
        KEPT_BYTES >> 20,
        "the other pieces are gone"
    );
}

#[test]
fn buffers_of_many_lengths_keep_no_more() {
    let buffers = Arc::new(Buffers::default());
    let held: Vec<Buffer> = (1..=128)
        .map(|n| buffers.take(n * SHORTEST).unwrap())
        .collect();
    assert!(kept(&buffers) <= KEPT_BYTES, "{}", kept(&buffers));
    drop(held);
    assert!(kept(&buffers) <= KEPT_BYTES, "{}", kept(&buffers));
}

#[test]
fn large_buffers_are_not_kept() {
    let buffers = Arc::new(Buffers::default());
    drop(buffers.take(KEPT_BYTES + 1).unwrap());
    assert_eq!((kept(&buffers), free_pieces(&buffers)), (0, 0));
}

#[test]
fn threads_take_and_give_back() {
    let buffers = Arc::new(Buffers::default());
    thread::scope(|scope| {
        for thread in 0..4_u8 {
            let buffers = &buffers;
            scope.spawn(move || {
                let mut held = Vec::new();
                for n in 0..200 {
                    let mut buffer = buffers.take(16_000 * (1 + n % 40)).unwrap();
                    buffer.fill(thread);
                    held.push(buffer);
                    if n % 3 == 0 {
                        let buffer = held.swap_remove(n / 3 % held.len());
                        assert!(buffer.iter().all(|&byte| byte == thread));
                    }
                }
            });
        }
    });
    assert!(kept(&buffers) <= KEPT_BYTES);
}
