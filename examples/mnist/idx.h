// The IDX files that MNIST comes in: a small header (element type, sizes), then the elements. Files
// may be gzip-compressed or plain.
//
// Not a general IDX reader: elements are unsigned bytes. Everything here is bounded, so a file that
// lies about its sizes costs an error and no memory. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <vector>

namespace mnist {

/// What was asked for, or a sentence that says what is wrong.
template <class T>
using Result = std::expected<T, std::string>;

using Byte = std::uint8_t;

/// The most bytes a file may hold once it is expanded. The largest of MNIST holds 47,040,016.
constexpr std::size_t kFileBytesMax = std::size_t{256} << 20;

/// An array of bytes with as many sizes as it has dimensions; the last one varies fastest.
struct IdxArray {
  std::vector<std::size_t> shape;
  std::vector<Byte> values;  ///< As many as the product of the shape.

  friend bool operator==(const IdxArray&, const IdxArray&) = default;
};

/// Reads an IDX file that is in memory. It must end where its header says.
Result<IdxArray> parse_idx(std::vector<Byte> bytes);

/// Expands gzip data that is in memory; data that is not gzip comes back as it is. More than
/// `bytes_max` bytes are an error, and no more than that is ever held.
Result<std::vector<Byte>> expand(std::span<const Byte> bytes, std::size_t bytes_max);

/// Digits and what they show.
struct Dataset {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<Byte> pixels;  ///< Image after image, row after row; 0 is paper, 255 is ink.
  std::vector<Byte> labels;  ///< One per image, 0 to 9.

  [[nodiscard]] std::size_t size() const { return labels.size(); }
  [[nodiscard]] std::size_t pixels_per_image() const { return rows * columns; }
};

/// Joins images and labels that belong together, or says why they do not.
Result<Dataset> make_dataset(IdxArray images, IdxArray labels);

/// Reads `<directory>/<part>-images-idx3-ubyte` and `-labels-idx1-ubyte`, plain or with `.gz`.
/// `part` is "train" or "t10k".
Result<Dataset> load_dataset(const std::string& directory, const std::string& part);
/// The same; what is wrong is thrown, as a std::runtime_error.
Dataset need_dataset(const std::string& directory, const std::string& part);

}  // namespace mnist
