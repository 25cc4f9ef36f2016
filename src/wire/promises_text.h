// Reservations of a yard, as text in its promise file, and those of others that it read, as text
// in its journal. Whoever writes such a file may be anybody: what is read is within limits, or it
// is an error.
//
// A file is written in place while others read it. So what stands in it is sealed: a first line of
// one length says how long the rest is, which write this is, and what the rest adds up to. Who
// finds that this is not so reads once more.
//
//   trainyard-promises 1 000000000017 00000242 8a1f2c3d4e5f6071
//   ticket 0001764122400123-5f0c2a1b
//   run 46 sweep
//   numbering 03c9d1f2a4b5e678
//   machine memory=64000000000 cpus=8000
//   held memory=18000000000 unused=2000000000 cpus=2000 tasks=2 since=1764122400
//   held-card GPU-8a56 memory=18000000000 unused=0 tasks=2 whole=0 used=0 most=0 since=1764122400
//   want memory=0 cpus=0 gpus=1 gpu-memory=8000000000 since=1764122460
//   drop-outs GPU-8a56 gpu=0 times=3 until=1764125000
//
// No state; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/gpu_limits.h"
#include "model/promises.h"

namespace trainyard::wire {

/// So large may a promise file be, and so many cards may it name.
constexpr std::size_t kPromiseBytesMax = std::size_t{64} << 10U;
constexpr std::size_t kPromiseCardsMax = 128;
/// Bytes that are read of a name; the rest is left out.
constexpr std::size_t kPromiseNameMax = 64;

std::string to_text(const model::Promises& promises);

/// An error names the line. Lines that begin with a word that nobody knows are left out, so that a
/// yard of a later version can be read.
Result<model::Promises> promises_from(std::string_view text);

/// Size of the line that seals a text, its end included.
constexpr std::size_t kPromiseSealBytes = 60;
/// The line that seals a text.
std::string seal_of(std::string_view text, std::uint64_t sequence);
/// `text` behind that line.
std::string sealed(std::string_view text, std::uint64_t sequence);
/// The text behind that line; nothing where it is not whole, or is being written.
std::optional<std::string_view> unsealed(std::string_view file);

/// Drained GPUs, a line each: "GPU-8a56 until=1764176400 now=0". Other lines are left out.
constexpr std::size_t kDrainsMax = 256;
std::string to_text(std::span<const model::Drain> drains);
std::vector<model::Drain> drains_from(std::string_view text);

/// Neighbours, one after the other, as the journal keeps them.
std::string neighbours_text(std::span<const model::Neighbour> neighbours);
/// Those in front of the first that cannot be read.
std::vector<model::Neighbour> neighbours_from(std::string_view text);

}  // namespace trainyard::wire
