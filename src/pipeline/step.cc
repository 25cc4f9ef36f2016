#include "trainyard/step.h"

#include <new>
#include <stdexcept>

#include "trainyard/detail/step_node.h"

namespace trainyard::detail {

void* FrameBlock::take_anew(FrameBlock* block, std::size_t size) {
  const std::size_t whole = size + sizeof(Header);
  if (block == nullptr || block->taken_) {
    return ::new (::operator new(whole)) Header{nullptr} + 1;
  }
  ::operator delete(std::exchange(block->memory_, nullptr));
  block->size_ = 0;
  block->memory_ = ::operator new(whole);
  block->size_ = whole;
  block->taken_ = true;
  return ::new (block->memory_) Header{block} + 1;
}

void throw_second_yield() {
  throw std::logic_error("yields a second time: a step has one forward and one backward half");
}

void StepNode::backward(Context&) {}
void StepNode::drop() noexcept {}
void StepNode::ended(Context&) {}

}  // namespace trainyard::detail
