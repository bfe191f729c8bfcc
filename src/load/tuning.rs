//! Every constant of loading and of reading ahead. Each was chosen by `scripts/bench`, which
//! compares two builds side by side, on local disks; those of shapes of reads by
//! `scripts/benchmark/random_reads.py` and `scripts/benchmark/growth.py`.

/// Bytes of small chunks that one thread loads in turn before it looks for other work: less, and
/// waking threads costs more than they load; more, and a read of 1 MiB keeps a core idle.
pub(crate) const STEP_BYTES: u64 = 256 << 10;

/// Most chunks of such a step. The arrays of a model checker are small, and have several steps.
pub(crate) const STEP_CHUNKS: usize = if cfg!(feature = "model") { 1 } else { 64 };

/// Memory of blocks that a reader in order is done with. Beyond this, the next block takes the
/// memory of the last of them: the pages of the kernel hold what was read, and fresh memory costs
/// the system more than the copy of it does.
pub(crate) const MOST_EVICT_FIRST_BYTES: u64 = 8 << 20;

/// Chunks of one read that are asked for at once: what is remembered of them takes no more than the
/// bytes of a long read.
pub(crate) const MOST_CHUNKS: usize = 4096;

/// Bytes of a page of a shard index: 4096 entries. A shorter index is one block.
pub(crate) const PAGE_BYTES: u64 = 64 << 10;

/// A read of so many bytes is a part of a longer one, which the kernel cuts and may send in another
/// order. A shorter one may be random: the rest of its chunk may never be asked for.
pub(crate) const LONG_READ_BYTES: u64 = 64 << 10;

/// The kernel reads pages; what is shorter is a part of a read, or the end of a file.
pub(crate) const SHORT_READ_BYTES: u64 = 512;

/// Pages of stored objects are as long as what could be read in the time of a request, no less than
/// this,
pub(crate) const LEAST_PAGE_BYTES: u64 = 64 << 10;

/// no more than this,
pub(crate) const MOST_PAGE_BYTES: u64 = 4 << 20;

/// and no more than this part of the cache.
pub(crate) const PAGES_SHARE: u64 = 64;

/// Memory of the output of reads that wait for chunks; when there is more, others wait for a thread
/// before they take any.
pub(crate) const MOST_PENDING_BYTES: u64 = 16 << 20;

/// Nothing is loaded ahead of a reader before it has read so much in order. A program that looks at
/// an image of 27 KiB, page by page, reads less.
pub(crate) const OPEN_BYTES: u64 = 64 << 10;

/// Nor before so many reads in order: a page fault makes the kernel read around it, in two requests
/// that follow each other.
pub(crate) const OPEN_READS: u64 = 3;

/// The window grows so many times while the reader goes on to its end, where asking costs little,
pub(crate) const GROWTH_LOCAL: u64 = 2;

/// and where each request takes its time.
pub(crate) const GROWTH_FAR: u64 = 4;

/// Nothing is loaded ahead of a reader of chunk files before it has read so many in order: one file
/// may be followed by its neighbour by chance.
pub(crate) const OPEN_FILES: u64 = 3;

/// Readers of the chunk files of one array that are told apart.
pub(crate) const MOST_FILE_READERS: usize = 8;

/// A program that opens files side by side may be so many files off the order.
pub(crate) const FILE_STRIDE: usize = 4;

/// The part of the cache that is filled ahead of one reader of chunk files.
pub(crate) const FILES_SHARE: u64 = 4;

/// How far ahead of the kernel's own readahead at least, in bytes of the file, so that no thread
/// runs out of small chunks.
pub(crate) const LEAD_BYTES: u64 = 4 << 20;

/// The kernel reads ahead in several long requests, which may overtake each other by so many times
/// their length,
pub(crate) const STRAY_REQUESTS: u64 = 4;

/// and no further than this.
pub(crate) const STRAY_BYTES: u64 = 4 << 20;

/// Chunks that are planned at once: of very small ones, the rest is planned when these are begun.
pub(crate) const MOST_PLANNED: u64 = 4096;
