#include "wire/hello.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::wire {
namespace {

std::string hello_error(std::string_view fields) {
  const auto hello = read_hello(fields);
  return hello ? "no error" : hello.error().message;
}

TEST(Hello, IsReadAsItWasWritten) {
  const Hello control{.program = "trainyard kill 0.1.0"};
  EXPECT_EQ(to_fields(control),
            R"({"program":"trainyard kill 0.1.0","role":"control","version":1})");
  EXPECT_EQ(read_hello(to_fields(control)).value(), control);
  const Hello task{.role = Role::Rank, .version = 2, .program = "p", .token = "t"};
  EXPECT_EQ(read_hello(to_fields(task)).value(), task);
}

TEST(Hello, SkipsMembersThatNobodyKnows) {
  EXPECT_EQ(read_hello(R"({"role":"control","version":1,"colour":"red"})").value(), Hello{});
}

TEST(Hello, SaysWhatIsWrong) {
  EXPECT_EQ(hello_error(""), "hello: 'role' is missing");
  EXPECT_EQ(hello_error("{"),
            "hello: fields: 1:2: expected a key in double quotes, found the end of the text");
  EXPECT_EQ(hello_error("[]"), "hello: fields must be an object, not array");
  EXPECT_EQ(hello_error(R"({"role":1})"), "hello: 'role' must be text");
  EXPECT_EQ(hello_error(R"({"role":"boss"})"),
            "hello: 'role' must be control, task, helper, rank or worker, not 'boss'");
  EXPECT_EQ(hello_error(R"({"role":"control"})"), "hello: 'version' is missing");
  EXPECT_EQ(hello_error(R"({"role":"control","version":"1"})"),
            "hello: 'version' must be a whole number from 0 to 1000000");
  EXPECT_EQ(hello_error(R"({"role":"control","version":1.0})"),
            "hello: 'version' must be a whole number from 0 to 1000000");
  EXPECT_EQ(hello_error(R"({"role":"control","version":18446744073709551615})"),
            "hello: 'version' must be a whole number from 0 to 1000000");
  EXPECT_EQ(hello_error(R"({"role":"control","version":1,"program":[]})"),
            "hello: 'program' must be text");
  EXPECT_EQ(
      hello_error(R"({"role":"control","version":1,"token":")" + std::string(257, 't') + "\"}"),
      "hello: 'token' must be shorter");
}

TEST(Hello, CutsALongProgramName) {
  const auto hello =
      read_hello(R"({"role":"control","version":1,"program":")" + std::string(900, 'p') + "\"}");
  EXPECT_EQ(hello.value().program, std::string(256, 'p'));
}

TEST(Welcome, IsReadAsItWasWritten) {
  const Welcome good{.ok = true, .server = "trainyard 0.1.0"};
  EXPECT_EQ(to_fields(good), R"({"ok":true,"server":"trainyard 0.1.0"})");
  EXPECT_EQ(read_welcome(to_fields(good)).value(), good);
  const Welcome bad{.ok = false, .server = "trainyard 0.1.0", .error = "no"};
  EXPECT_EQ(read_welcome(to_fields(bad)).value(), bad);
  EXPECT_EQ(read_welcome(R"({"ok":1})").error().message,
            "answer to hello: 'ok' must be true or false");
}

TEST(Welcome, LetsThisVersionInAndNoOther) {
  EXPECT_EQ(answer({}, "s"), (Welcome{.ok = true, .server = "s"}));
  EXPECT_EQ(answer({.version = 3}, "s"),
            (Welcome{.ok = false,
                     .server = "s",
                     .error = "version 3 of the protocol is not spoken here, 1 is"}));
}

}  // namespace
}  // namespace trainyard::wire
