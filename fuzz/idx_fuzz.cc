// The reader of IDX files, on any bytes: compressed or not, it must end in an array or an error.
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "mnist/idx.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kBytesMax = std::size_t{1} << 20;
  auto bytes = mnist::expand(std::span(data, size), kBytesMax);
  if (!bytes) return 0;
  trainyard::check(bytes->size() <= kBytesMax, "expand() keeps its bound");

  auto array = mnist::parse_idx(*std::move(bytes));
  if (!array) return 0;
  std::size_t product = 1;
  for (const std::size_t side : array->shape) product *= side;
  trainyard::check(product == array->values.size(), "as many values as the shape says");

  const auto dataset = mnist::make_dataset(*array, *array);
  trainyard::check(!dataset, "no file holds both images and labels");
  return 0;
}
