#include "ranks/reduce.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

namespace trainyard::ranks {
namespace {

/// So many numbers of all ranks stay in the cache while they are added.
constexpr std::size_t kBlock = 4'096;

template <class T>
void reduce_as(const std::vector<const Buffer*>& parts, Reduction reduction, Buffer& into) {
  const std::span<T> sum = into.fill<T>();
  for (std::size_t start = 0; start < sum.size(); start += kBlock) {
    const std::size_t count = std::min(kBlock, sum.size() - start);
    const std::span<T> block = sum.subspan(start, count);
    std::ranges::copy(parts.front()->as<T>().subspan(start, count), block.begin());
    for (std::size_t part = 1; part < parts.size(); ++part) {
      const std::span<const T> other = parts[part]->as<T>().subspan(start, count);
      for (std::size_t i = 0; i < count; ++i) block[i] = static_cast<T>(block[i] + other[i]);
    }
    if constexpr (std::is_floating_point_v<T>) {
      if (reduction != Reduction::Mean) continue;
      const T divisor = static_cast<T>(parts.size());
      for (T& each : block) each /= divisor;
    }
  }
}

/// False when numbers of that type are not reduced so.
bool reduce_typed(const std::vector<const Buffer*>& parts, Reduction reduction, Buffer& into) {
  const DType type = into.dtype();
  if (type == DType::Float32) return reduce_as<float>(parts, reduction, into), true;
  if (type == DType::Float64) return reduce_as<double>(parts, reduction, into), true;
  if (reduction == Reduction::Mean) return false;
  switch (type) {
    case DType::Int32:
      return reduce_as<std::int32_t>(parts, reduction, into), true;
    case DType::UInt32:
      return reduce_as<std::uint32_t>(parts, reduction, into), true;
    case DType::Int64:
      return reduce_as<std::int64_t>(parts, reduction, into), true;
    case DType::UInt64:
      return reduce_as<std::uint64_t>(parts, reduction, into), true;
    default:
      return false;
  }
}

}  // namespace

Result<Shareable> reduce(const std::vector<Shareable>& replies, Reduction reduction,
                         const std::function<Result<Buffer>(DType, Dimensions)>& alloc) {
  Shareable reduced = replies.front();
  for (const auto& [name, first] : replies.front().buffers()) {
    std::vector<const Buffer*> parts;
    for (std::size_t rank = 0; rank < replies.size(); ++rank) {
      const Buffer* const part = replies[rank].buffer(name);
      if (part == nullptr || part->dtype() != first.dtype() || part->shape() != first.shape()) {
        return std::unexpected(Error{fmt::format(
            "rank {} has {} '{}' to reduce", rank,
            part == nullptr ? "no buffer" : "another type or shape of the buffer", name)});
      }
      parts.push_back(part);
    }
    auto into = alloc(first.dtype(), first.shape());
    if (!into) return std::unexpected(std::move(into.error()));
    if (!reduce_typed(parts, reduction, *into)) {
      return std::unexpected(Error{fmt::format("the buffer '{}' is of {}, of which there is no {}",
                                               name, to_text(first.dtype()),
                                               reduction == Reduction::Mean ? "mean" : "sum")});
    }
    reduced.set_buffer(name, std::move(*into));
  }
  return reduced;
}

}  // namespace trainyard::ranks
