"""Chunk grids, axis by axis. The chunks along an axis have one length, or the lengths of a list, with runs as [length, count]."""
import itertools


def listed(chunks):
    """The lengths of a list, without runs. A single length for all chunks stays as it is."""
    if not isinstance(chunks, list):
        return chunks
    return [length for run in chunks for length in ([run[0]] * run[1] if isinstance(run, list) else [run])]


def span(chunks, index):
    """The first element of a chunk, and its length."""
    if isinstance(chunks, list):
        return sum(chunks[:index]), chunks[index]
    return index * chunks, chunks


def chunk_at(chunks, position):
    """The index of the chunk that an element is in."""
    if isinstance(chunks, list):
        return sum(end <= position for end in itertools.accumulate(chunks))
    return position // chunks


def count(chunks, length):
    """The number of chunks that have elements of an axis of this length."""
    return chunk_at(chunks, length - 1) + 1 if length and chunks else 0


def box(grid, index):
    """The slices of a chunk, which may reach past the edge of the array."""
    return tuple(slice(start, start + length) for start, length in (span(chunks, i) for chunks, i in zip(grid, index)))


def shape(grid, index):
    """The shape of a chunk."""
    return tuple(span(chunks, i)[1] for chunks, i in zip(grid, index))
