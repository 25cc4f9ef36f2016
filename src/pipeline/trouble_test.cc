#include "pipeline/trouble.h"

#include <new>
#include <stdexcept>

#include <gtest/gtest.h>

namespace trainyard::pipeline {
namespace {

template <class Throw>
Trouble trouble_from(Throw raise) {
  try {
    raise();
  } catch (...) {
    return trouble_of(std::current_exception());
  }
  return {};
}

TEST(Trouble, IsToldWithItsTypeAndWhatItCameFrom) {
  const Trouble trouble = trouble_from([] {
    try {
      throw std::out_of_range("row 7");
    } catch (...) {
      std::throw_with_nested(std::runtime_error("cannot read 'x.csv'"));
    }
  });
  EXPECT_FALSE(trouble.out_of_memory);
  EXPECT_TRUE(trouble.message.ends_with("std::runtime_error>: cannot read 'x.csv'"))
      << trouble.message;
  EXPECT_EQ(trouble.traceback, trouble.message + "\nbecause of std::out_of_range: row 7\n");
}

TEST(Trouble, IsOutOfMemoryHoweverItIsSaid) {
  EXPECT_TRUE(trouble_from([] { throw std::bad_alloc(); }).out_of_memory);
  EXPECT_TRUE(
      trouble_from([] { throw std::runtime_error("CUDA out of memory. Tried"); }).out_of_memory);
  EXPECT_TRUE(trouble_from([] {
                try {
                  throw std::bad_alloc();
                } catch (...) {
                  std::throw_with_nested(std::logic_error("no batch"));
                }
              }).out_of_memory);
  EXPECT_FALSE(trouble_from([] { throw std::logic_error("no batch"); }).out_of_memory);
}

TEST(Trouble, MayBeOfAnyType) {
  EXPECT_EQ(trouble_from([] { throw 7; }).message,
            "something that is no std::exception was thrown: int");
  EXPECT_EQ(trouble_from([] { throw "why"; }).message, "a text was thrown: why");
  EXPECT_EQ(trouble_from([] { throw nullptr; }).message, "a text was thrown: none");
  EXPECT_EQ(trouble_from([] { throw std::string("why"); }).traceback, "a text was thrown: why\n");
}

}  // namespace
}  // namespace trainyard::pipeline
