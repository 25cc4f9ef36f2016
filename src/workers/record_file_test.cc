#include "workers/record_file.h"

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time.h"
#include "sys/event_loop.h"
#include "sys/test_directory.h"

namespace trainyard::workers {
namespace {

using ::testing::HasSubstr;

TEST(RecordFile, IsWrittenBeforeAnythingElseThenEachSecondAndAtTheEnd) {
  const sys::TemporaryDirectory place;
  const std::string path = place / "workers.json";
  sys::EventLoop loop;
  int writes = 0;
  RecordFile file(loop, {.path = path, .text = [&] { return std::to_string(++writes); }});
  EXPECT_EQ(sys::content_of(path), "1");
  while (writes == 1) loop.run_once(std::nullopt);
  EXPECT_EQ(sys::content_of(path), "2");
  const Duration first = sys::EventLoop::now();
  while (writes == 2) loop.run_once(std::nullopt);
  // Milliseconds are rounded.
  EXPECT_GE(sys::EventLoop::now() - first, RecordFile::kEvery - Duration(2));
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
