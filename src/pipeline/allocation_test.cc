// An iteration allocates nothing, after the first. Every operator new of this program counts.
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "pipeline/test_loop.h"
#include "trainyard/event.h"
#include "trainyard/event_bus.h"
#include "trainyard/pipeline.h"

namespace {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<std::size_t> allocations = 0;

void* counted(std::size_t size) {
  ++allocations;
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// NOLINTBEGIN(clang-analyzer-cplusplus.NewDelete): these are new and delete
void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  ++allocations;
  const auto unit = static_cast<std::size_t>(alignment);
  void* const memory = std::aligned_alloc(unit, (size + unit - 1) / unit * unit);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
// NOLINTEND(clang-analyzer-cplusplus.NewDelete)

namespace trainyard::pipeline {
namespace {

struct Object {
  void forward(Loop& context) { ++context.loss; }
  void backward(Loop& context) { --context.loss; }
};

/// How many the iterations of a run allocate that follow on its first ones.
std::size_t allocations_of_later_iterations(Pipeline<Loop>& loop) {
  EXPECT_TRUE(loop.run({.max_steps = 20}));
  const std::size_t before = allocations;
  EXPECT_TRUE(loop.run({.max_steps = 1'000}));
  return allocations - before;
}

void use_all_kinds(Pipeline<Loop>& loop) {
  loop.use("plain", [](Loop& context) { ++context.count; })
      .use("returns", [](Loop& context) { return [&context] { ++context.count; }; })
      .use("coroutine",
           [](Loop& context) -> Step {
             ++context.count;
             co_yield after;
             ++context.count;
           })
      .use("object", Object{});
}

TEST(Allocation, IsNoneInAnIterationOfAnyKindOfStep) {
  Pipeline<Loop> loop;
  use_all_kinds(loop);
  EXPECT_EQ(allocations_of_later_iterations(loop), 0U);
}

TEST(Allocation, IsNoneWithWrappersLocksGroupsAndNestedSteps) {
  Pipeline<Loop> loop({.n_async_workers = 2});
  use_all_kinds(loop);
  const auto inner = loop.nested("inner", [](Loop&) -> Step { co_yield after; });
  const auto half = [](Loop&) -> Step { co_yield after; };
  loop.wrap([](const StepCall&, Loop&, const Next& next) { next(); });
  loop.use("locked", half, {.lock = shared_lock})
      .use("group", parallel(half, half, serial(half, half)))
      .use("calls", [&](Loop& context) { inner(context)(); });
  EXPECT_EQ(allocations_of_later_iterations(loop), 0U);
}

TEST(Allocation, IsNoneSideBySide) {
  Pipeline<Loop> loop({.async = true, .n_async_workers = 2});
  use_all_kinds(loop);
  for (int i = 0; i < 4; ++i) {
    loop.use([](Loop&) -> Step { co_yield after; }, {.writes = {nothing}});
  }
  EXPECT_EQ(allocations_of_later_iterations(loop), 0U);
}

TEST(Allocation, IsNoneWhenAnEventIsEmitted) {
  constexpr Event<int> kNumber{"number"};
  EventBus bus;
  int sum = 0;
  const Subscription heard = bus.on(kNumber, [&](int value) { sum += value; });
  const std::size_t before = allocations;
  for (int i = 0; i < 1'000; ++i) bus.emit(kNumber, i);
  EXPECT_EQ(allocations - before, 0U);
  EXPECT_EQ(sum, 499'500);
}

}  // namespace
}  // namespace trainyard::pipeline
