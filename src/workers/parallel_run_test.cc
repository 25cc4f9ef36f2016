#include "workers/parallel_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/test_directory.h"

namespace trainyard::workers {
namespace {

using ::testing::HasSubstr;

TEST(RecordFile, IsWrittenBeforeAnythingElseThenEachSecondAndAtTheEnd) {
  const sys::TemporaryDirectory place;
  const std::string path = place / "workers.json";
  sys::EventLoop loop;
  std::vector<Duration> writes;
  const auto text = [&] {
    writes.push_back(sys::EventLoop::now());
    return std::to_string(writes.size());
  };
  RecordFile file(loop, {.path = path, .text = text});
  EXPECT_EQ(sys::content_of(path), "1");
  while (writes.size() == 1) loop.run_once(std::nullopt);
  EXPECT_EQ(sys::content_of(path), "2");
  while (writes.size() == 2) loop.run_once(std::nullopt);
  // The timer of the third write is set after the text of the second one is made.
  EXPECT_GE(writes[2] - writes[1], RecordFile::kEvery);
  ASSERT_TRUE(file.write_last());
  EXPECT_EQ(sys::content_of(path), "4");
}

TEST(RecordFile, ThatCannotBeWrittenIsTold) {
  const sys::TemporaryDirectory place;
  sys::EventLoop loop;
  RecordFile file(loop, {.path = place / "nowhere/workers.json", .text = [] { return "x"; }});
  const auto written = file.write_last();
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("nowhere/workers.json"));
}

}  // namespace
}  // namespace trainyard::workers
