#include "mnist/idx.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <ios>
#include <stdexcept>
#include <utility>

#include <zconf.h>
#include <zlib.h>

#include <fmt/format.h>

namespace mnist {
namespace {

constexpr Byte kUnsignedByte = 0x08;  // The type code of the elements.
constexpr std::size_t kDimensionsMax = 3;
constexpr std::size_t kCountMax = 10'000'000;
constexpr std::size_t kSideMax = 4096;
constexpr int kDigits = 10;

std::unexpected<std::string> error(std::string message) {
  return std::unexpected(std::move(message));
}

std::size_t big_endian(std::span<const Byte, 4> bytes) {
  std::size_t value = 0;
  for (const Byte byte : bytes) value = value << 8 | byte;
  return value;
}

bool is_gzip(std::span<const Byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

/// A zlib stream, given back whatever happens.
class Inflater {
 public:
  explicit Inflater(std::span<const Byte> input) {
    // zlib never writes through next_in; its type is older than const.
    stream_.next_in = const_cast<Byte*>(input.data());
    stream_.avail_in = static_cast<uInt>(input.size());
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    ready_ = inflateInit2(&stream_, kGzipOnly) == Z_OK;
  }
  ~Inflater() {
    if (ready_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  [[nodiscard]] bool ready() const { return ready_; }
  [[nodiscard]] std::size_t left() const { return stream_.avail_in; }

  /// Appends what fits into one chunk, and returns zlib's word on it.
  int step(std::vector<Byte>& output) {
    std::array<Byte, std::size_t{64} << 10> chunk;
    stream_.next_out = chunk.data();
    stream_.avail_out = static_cast<uInt>(chunk.size());
    const int status = inflate(&stream_, Z_NO_FLUSH);
    output.insert(output.end(), chunk.begin(), chunk.end() - stream_.avail_out);
    return status;
  }

 private:
  z_stream stream_{};
  bool ready_ = false;
};

Result<std::vector<Byte>> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return error("cannot be opened");
  const std::streamoff size = file.tellg();
  if (size < 0) return error("cannot be read: is it a file?");
  if (static_cast<std::size_t>(size) > kFileBytesMax) {
    return error(fmt::format("{} bytes, more than {}", size, kFileBytesMax));
  }
  std::vector<Byte> bytes(static_cast<std::size_t>(size));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), size);
  if (!file) return error("cannot be read to its end");
  return bytes;
}

Result<IdxArray> read_idx(const std::string& path) {
  const Result<std::vector<Byte>> packed = read_file(path);
  if (!packed) return error(packed.error());
  Result<std::vector<Byte>> bytes = expand(*packed, kFileBytesMax);
  if (!bytes) return error(std::move(bytes.error()));
  return parse_idx(*std::move(bytes));
}

/// Reads `path`, or `path`.gz where there is no such file.
Result<IdxArray> load_idx(const std::string& path) {
  const std::string name = std::ifstream(path) ? path : path + ".gz";
  Result<IdxArray> array = read_idx(name);
  if (!array) return error(name + ": " + array.error());
  return array;
}

}  // namespace

Result<IdxArray> parse_idx(std::vector<Byte> bytes) {
  if (bytes.size() < 4) {
    return error(fmt::format("{} bytes, an IDX file has at least 4", bytes.size()));
  }
  if (bytes[0] != 0 || bytes[1] != 0) return error("not an IDX file: it must begin with two zeros");
  if (bytes[2] != kUnsignedByte) {
    return error(fmt::format("element type 0x{:02x}, only 0x08 (unsigned byte) can be read",
                             static_cast<unsigned>(bytes[2])));
  }

  const std::size_t dimensions = bytes[3];
  if (dimensions == 0 || dimensions > kDimensionsMax) {
    return error(
        fmt::format("{} dimensions, only 1 to {} can be read", dimensions, kDimensionsMax));
  }
  const std::size_t header = 4 + 4 * dimensions;
  if (bytes.size() < header) {
    return error(fmt::format("ends in its header, after {} of {} bytes", bytes.size(), header));
  }

  IdxArray array;
  // At most 10^7 * 4096^2 < 2^48: the product of three sizes within their bounds does not overflow.
  std::size_t expected = 1;
  for (std::size_t i = 0; i < dimensions; ++i) {
    const std::size_t size = big_endian(std::span(bytes).subspan(4 + 4 * i).first<4>());
    const std::size_t size_max = i == 0 ? kCountMax : kSideMax;
    if (size > size_max) {
      return error(fmt::format("dimension {} is {}, more than {}", i + 1, size, size_max));
    }
    array.shape.push_back(size);
    expected *= size;
  }
  if (bytes.size() - header != expected) {
    return error(fmt::format("its header promises {} bytes of data, {} are there", expected,
                             bytes.size() - header));
  }
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header));
  array.values = std::move(bytes);
  return array;
}

Result<std::vector<Byte>> expand(std::span<const Byte> bytes, std::size_t bytes_max) {
  if (bytes.size() > kFileBytesMax) return error("too large to be expanded");
  if (!is_gzip(bytes)) {
    if (bytes.size() > bytes_max) return error(fmt::format("more than {} bytes", bytes_max));
    return std::vector(bytes.begin(), bytes.end());
  }

  Inflater inflater(bytes);
  if (!inflater.ready()) return error("no memory to expand it");
  std::vector<Byte> output;
  int status = Z_OK;
  while (status == Z_OK) {
    status = inflater.step(output);
    if (output.size() > bytes_max) {
      return error(fmt::format("expands to more than {} bytes", bytes_max));
    }
  }
  if (status == Z_BUF_ERROR) return error("the gzip data is cut off");
  if (status != Z_STREAM_END) return error("the gzip data is damaged");
  if (inflater.left() != 0) {
    return error(fmt::format("{} bytes follow the gzip data", inflater.left()));
  }
  return output;
}

Result<Dataset> make_dataset(IdxArray images, IdxArray labels) {
  if (images.shape.size() != 3) {
    return error(fmt::format("images have {} dimensions, 3 are needed", images.shape.size()));
  }
  if (labels.shape.size() != 1) {
    return error(fmt::format("labels have {} dimensions, 1 is needed", labels.shape.size()));
  }
  if (images.shape[0] != labels.shape[0]) {
    return error(fmt::format("{} images, but {} labels", images.shape[0], labels.shape[0]));
  }
  if (images.values.empty()) return error("no images");
  const auto wrong =
      std::ranges::find_if(labels.values, [](Byte label) { return label >= kDigits; });
  if (wrong != labels.values.end()) {
    return error(fmt::format("label {} is {}, labels are 0 to 9", wrong - labels.values.begin(),
                             static_cast<unsigned>(*wrong)));
  }
  return Dataset{.rows = images.shape[1],
                 .columns = images.shape[2],
                 .pixels = std::move(images.values),
                 .labels = std::move(labels.values)};
}

Result<Dataset> load_dataset(const std::string& directory, const std::string& part) {
  const std::string base = directory + "/" + part;
  Result<IdxArray> images = load_idx(base + "-images-idx3-ubyte");
  if (!images) return error(std::move(images.error()));
  Result<IdxArray> labels = load_idx(base + "-labels-idx1-ubyte");
  if (!labels) return error(std::move(labels.error()));
  Result<Dataset> dataset = make_dataset(*std::move(images), *std::move(labels));
  if (!dataset) return error(base + ": " + dataset.error());
  return dataset;
}

Dataset need_dataset(const std::string& directory, const std::string& part) {
  Result<Dataset> data = load_dataset(directory, part);
  if (!data) throw std::runtime_error(data.error());
  return *std::move(data);
}

}  // namespace mnist
