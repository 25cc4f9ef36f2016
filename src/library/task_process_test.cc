#include "library/task_process.h"

#include <sys/types.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sys/test_directory.h"

namespace trainyard::library {
namespace {

class ResultFileTest : public ::testing::Test {
 protected:
  [[nodiscard]] ino_t inode() const {
    struct stat about{};
    EXPECT_EQ(::stat(path.c_str(), &about), 0);
    return about.st_ino;
  }

  sys::TemporaryDirectory directory;
  std::string path = directory / "result.json";
  ResultFile file{path};
};

TEST_F(ResultFileTest, AddsMembersToTheFileThatIsThere) {
  ASSERT_TRUE(file.replace(R"({"a":1})"));
  const ino_t before = inode();
  EXPECT_TRUE(file.add(R"({"b":[2,{}]})"));
  EXPECT_TRUE(file.add(R"({"c":"}"})"));
  EXPECT_EQ(sys::content_of(path), R"({"a":1,"b":[2,{}],"c":"}"})");
  EXPECT_EQ(inode(), before);
  ASSERT_TRUE(file.replace(R"({"a":2})"));
  EXPECT_EQ(sys::content_of(path), R"({"a":2})");
  EXPECT_TRUE(file.add(R"({"b":2})"));
  EXPECT_EQ(sys::content_of(path), R"({"a":2,"b":2})");
}

TEST_F(ResultFileTest, AddsNoMemberThatWouldBeInTwoPages) {
  // The member would begin on the last two bytes of the first page.
  const std::string whole = fmt::format(R"({{"a":"{}"}})", std::string(4'095 - 8, 'x'));
  ASSERT_EQ(whole.size(), 4'095U);
  ASSERT_TRUE(file.replace(whole));
  EXPECT_FALSE(file.add(R"({"b":2})"));
  EXPECT_EQ(sys::content_of(path), whole);
  // The last brace is the first byte of the second page.
  ASSERT_TRUE(file.replace(whole.substr(0, 4'093) + "xx\"}"));
  EXPECT_TRUE(file.add(R"({"b":2})"));
}

TEST_F(ResultFileTest, AddsNothingToWhatIsNoObjectOrNotItsOwn) {
  EXPECT_FALSE(file.add(R"({"a":1})"));
  for (const std::string text : {"{}", "[1]", "null", ""}) {
    ASSERT_TRUE(file.replace(text));
    EXPECT_FALSE(file.add(R"({"a":1})"));
    EXPECT_EQ(sys::content_of(path), text);
  }
  ASSERT_TRUE(file.replace(R"({"a":1})"));
  directory.write("result.json", R"({"of a task":1})");
  EXPECT_FALSE(file.add(R"({"b":1})"));
  ASSERT_TRUE(file.replace(R"({"a":1})"));
  ASSERT_TRUE(ResultFile(path).replace(R"({"b":1})"));
  EXPECT_FALSE(file.add(R"({"c":1})"));
  EXPECT_EQ(sys::content_of(path), R"({"b":1})");
}

}  // namespace
}  // namespace trainyard::library
