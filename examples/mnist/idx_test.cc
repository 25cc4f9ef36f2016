// The reader of IDX files: what it takes, and how it refuses what it should not take.
#include "mnist/idx.h"

#include <filesystem>
#include <fstream>
#include <ios>
#include <utility>

#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp
#include <zconf.h>
#include <zlib.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mnist {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr std::size_t kPlenty = 1 << 20;

/// Two images of 1 x 3 pixels.
std::vector<Byte> two_images() {
  return {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, 10, 11, 12, 20, 21, 22};
}

std::vector<Byte> labels(const std::vector<Byte>& values) {
  std::vector<Byte> bytes{0, 0, 8, 1, 0, 0, 0, static_cast<Byte>(values.size())};
  bytes.insert(bytes.end(), values.begin(), values.end());
  return bytes;
}

std::vector<Byte> gzip(std::vector<Byte> bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::vector<Byte> packed(deflateBound(&stream, bytes.size()));
  stream.next_in = bytes.data();
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

template <class T>
std::string fault(const Result<T>& result) {
  return result ? "none" : result.error();
}

std::string fault(std::vector<Byte> bytes) { return fault(parse_idx(std::move(bytes))); }

/// A directory that is gone after the test.
class Files {
 public:
  Files() {
    std::string pattern = (std::filesystem::temp_directory_path() / "idx-XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  ~Files() { std::filesystem::remove_all(path_); }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  void write(const std::string& name, const std::vector<Byte>& bytes) const {
    std::ofstream file(path_ + "/" + name, std::ios::binary);
    for (const Byte byte : bytes) file.put(static_cast<char>(byte));
  }

 private:
  std::string path_;
};

TEST(Idx, ReadsShapeAndValues) {
  const auto array = parse_idx(two_images());
  ASSERT_TRUE(array) << array.error();
  EXPECT_THAT(array->shape, ElementsAre(2, 1, 3));
  EXPECT_THAT(array->values, ElementsAre(10, 11, 12, 20, 21, 22));
}

TEST(Idx, RefusesAFileThatIsCutOffAnywhere) {
  for (std::size_t size = 0; size < two_images().size(); ++size) {
    auto bytes = two_images();
    bytes.resize(size);
    EXPECT_NE(fault(std::move(bytes)), "none") << size;
  }
}

TEST(Idx, SaysWhatIsMissing) {
  EXPECT_EQ(fault({}), "0 bytes, an IDX file has at least 4");
  EXPECT_EQ(fault({0, 0, 8, 3, 0, 0}), "ends in its header, after 6 of 16 bytes");
  auto bytes = two_images();
  bytes.pop_back();
  EXPECT_EQ(fault(bytes), "its header promises 6 bytes of data, 5 are there");
}

TEST(Idx, RefusesMoreDataThanItsHeaderPromises) {
  auto bytes = two_images();
  bytes.push_back(0);
  EXPECT_EQ(fault(bytes), "its header promises 6 bytes of data, 7 are there");
}

TEST(Idx, RefusesAWrongBeginning) {
  EXPECT_EQ(fault({'P', 'K', 8, 3}), "not an IDX file: it must begin with two zeros");
  EXPECT_EQ(fault({0, 0, 0x0d, 3}), "element type 0x0d, only 0x08 (unsigned byte) can be read");
  EXPECT_EQ(fault({0, 0, 8, 0}), "0 dimensions, only 1 to 3 can be read");
  EXPECT_EQ(fault({0, 0, 8, 4}), "4 dimensions, only 1 to 3 can be read");
}

TEST(Idx, RefusesSizesBeyondItsBoundsBeforeItTakesMemory) {
  EXPECT_EQ(fault({0, 0, 8, 1, 255, 255, 255, 255}),
            "dimension 1 is 4294967295, more than 10000000");
  EXPECT_EQ(fault({0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0x10, 1}), "dimension 2 is 4097, more than 4096");
  // The largest sizes that are allowed promise 1.6 * 10^14 bytes, and none of them is there.
  EXPECT_EQ(fault({0, 0, 8, 3, 0, 0x98, 0x96, 0x80, 0, 0, 0x10, 0, 0, 0, 0x10, 0}),
            "its header promises 167772160000000 bytes of data, 0 are there");
}

TEST(Expand, LeavesWhatIsNotGzip) {
  const auto bytes = expand(two_images(), kPlenty);
  ASSERT_TRUE(bytes) << bytes.error();
  EXPECT_EQ(*bytes, two_images());
}

TEST(Expand, ExpandsGzip) {
  const auto bytes = expand(gzip(two_images()), kPlenty);
  ASSERT_TRUE(bytes) << bytes.error();
  EXPECT_EQ(*bytes, two_images());
}

TEST(Expand, RefusesGzipThatIsCutOffAnywhere) {
  const auto packed = gzip(two_images());
  for (std::size_t size = 2; size < packed.size(); ++size) {
    EXPECT_FALSE(expand(std::span(packed).first(size), kPlenty)) << size;
  }
}

TEST(Expand, RefusesDamagedGzipAndWhatFollowsIt) {
  auto damaged = gzip(two_images());
  damaged[damaged.size() - 8] ^= 1;  // In the checksum.
  EXPECT_EQ(fault(expand(damaged, kPlenty)), "the gzip data is damaged");
  auto longer = gzip(two_images());
  longer.push_back(0);
  EXPECT_EQ(fault(expand(longer, kPlenty)), "1 bytes follow the gzip data");
}

TEST(Expand, StopsAtItsBound) {
  const auto packed = gzip(std::vector<Byte>(1000, 7));
  EXPECT_TRUE(expand(packed, 1000));
  EXPECT_EQ(fault(expand(packed, 999)), "expands to more than 999 bytes");
  EXPECT_EQ(fault(expand(two_images(), 21)), "more than 21 bytes");
}

TEST(Dataset, JoinsImagesAndTheirLabels) {
  const auto data = make_dataset(*parse_idx(two_images()), *parse_idx(labels({7, 2})));
  ASSERT_TRUE(data) << data.error();
  EXPECT_EQ(data->size(), 2);
  EXPECT_EQ(data->rows, 1);
  EXPECT_EQ(data->columns, 3);
  EXPECT_THAT(data->pixels, ElementsAre(10, 11, 12, 20, 21, 22));
  EXPECT_THAT(data->labels, ElementsAre(7, 2));
}

TEST(Dataset, RefusesImagesAndLabelsThatDoNotBelongTogether) {
  const auto images = parse_idx(two_images());
  const auto refused = [](const IdxArray& a, const IdxArray& b) {
    return fault(make_dataset(a, b));
  };
  EXPECT_EQ(refused(*images, *parse_idx(labels({1, 2, 3}))), "2 images, but 3 labels");
  EXPECT_EQ(refused(*images, *parse_idx(labels({1, 10}))), "label 1 is 10, labels are 0 to 9");
  EXPECT_EQ(refused(*images, *images), "labels have 3 dimensions, 1 is needed");
  EXPECT_EQ(refused(*parse_idx(labels({1})), *parse_idx(labels({1}))),
            "images have 1 dimensions, 3 are needed");
  EXPECT_EQ(refused({.shape = {0, 28, 28}, .values = {}}, {.shape = {0}, .values = {}}),
            "no images");
}

TEST(LoadDataset, TakesThePlainFileBeforeTheCompressedOne) {
  const Files files;
  files.write("t10k-images-idx3-ubyte.gz", gzip(two_images()));
  files.write("t10k-labels-idx1-ubyte.gz", gzip(labels({1, 2})));
  files.write("t10k-labels-idx1-ubyte", labels({3, 4}));
  const auto data = load_dataset(files.path(), "t10k");
  ASSERT_TRUE(data) << data.error();
  EXPECT_THAT(data->labels, ElementsAre(3, 4));
}

TEST(LoadDataset, NamesTheFileThatIsWrong) {
  const Files files;
  EXPECT_THAT(fault(load_dataset(files.path(), "train")),
              EndsWith("/train-images-idx3-ubyte.gz: cannot be opened"));
  files.write("train-images-idx3-ubyte", two_images());
  files.write("train-labels-idx1-ubyte", {0, 0, 8});
  EXPECT_THAT(fault(load_dataset(files.path(), "train")),
              EndsWith("/train-labels-idx1-ubyte: 3 bytes, an IDX file has at least 4"));
  std::filesystem::remove(files.path() + "/train-labels-idx1-ubyte");
  std::filesystem::create_directory(files.path() + "/train-labels-idx1-ubyte");
  EXPECT_THAT(fault(load_dataset(files.path(), "train")), HasSubstr("/train-labels-idx1-ubyte: "));
}

}  // namespace
}  // namespace mnist
