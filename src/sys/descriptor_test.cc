#include "sys/descriptor.h"

#include <fcntl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::sys {
namespace {

using ::testing::Contains;
using ::testing::Not;

int open_null() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool is_open(int number) { return ::fcntl(number, F_GETFD) >= 0; }

TEST(Descriptor, OwnsItsNumberUntilItIsReleased) {
  const int number = open_null();
  ASSERT_GE(number, 0);
  EXPECT_THAT(descriptors_of_program(), Contains(number));
  Descriptor owner(number);
  EXPECT_THAT(descriptors_of_program(), Not(Contains(number)));
  Descriptor other(std::move(owner));
  EXPECT_THAT(descriptors_of_program(), Not(Contains(number)));
  EXPECT_EQ(other.release(), number);
  EXPECT_THAT(descriptors_of_program(), Contains(number));
  Descriptor(number).close();
  EXPECT_FALSE(is_open(number));
}

TEST(Descriptor, OfTheProgramAreLeftOpenByAForkThatClosesOurs) {
  const int program = open_null();
  // The larger number.
  const Descriptor ours(open_null());
  ASSERT_GT(ours.get(), program);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    close_all_but({program});
    const bool closed = is_open(program) && !is_open(ours.get());
    // The number is the program's when the program gets it again.
    const bool again = ::dup2(program, ours.get()) == ours.get();
    const auto left = descriptors_of_program();
    const bool both = left.size() == 2 && left.front() == program && left.back() == ours.get();
    ::_exit(closed && again && both && is_open(STDERR_FILENO) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(is_open(ours.get()));
  ::close(program);
}

TEST(Descriptor, OfAClosedStandardOutputIsTakenAndCannotBeWritten) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(number);
    open_standard_descriptors();
    char read = 'x';
    const bool reads = ::read(STDIN_FILENO, &read, 1) == 0;
    const bool lost = ::write(STDOUT_FILENO, "x", 1) < 0;
    const bool writes = ::write(STDERR_FILENO, "x", 1) == 1;
    ::_exit(reads && lost && writes ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace trainyard::sys
