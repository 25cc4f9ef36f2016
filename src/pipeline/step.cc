#include "trainyard/step.h"

#include <cstddef>
#include <new>
#include <stdexcept>
#include <utility>

#include "trainyard/context.h"
#include "trainyard/detail/step_node.h"

namespace trainyard::detail {

void* FrameBlock::take(std::size_t size) {
  const std::size_t whole = size + sizeof(Header);
  FrameBlock* const block = std::exchange(offered_, nullptr);
  void* memory = nullptr;
  if (block != nullptr && !block->taken_) {
    if (block->size_ < whole) {
      ::operator delete(std::exchange(block->memory_, nullptr));
      block->memory_ = ::operator new(whole);
      block->size_ = whole;
    }
    block->taken_ = true;
    memory = block->memory_;
    ::new (memory) Header{block};
  } else {
    memory = ::operator new(whole);
    ::new (memory) Header{nullptr};
  }
  return static_cast<std::byte*>(memory) + sizeof(Header);
}

void FrameBlock::give_back(void* frame) {
  auto* const header =
      reinterpret_cast<Header*>(static_cast<std::byte*>(frame) - sizeof(Header));
  if (header->owner != nullptr) {
    header->owner->taken_ = false;
  } else {
    ::operator delete(header);
  }
}

void throw_second_yield() {
  throw std::logic_error("yields a second time: a step has one way forward and one way back");
}

void StepNode::backward(Context&) {}
void StepNode::drop() noexcept {}
void StepNode::ended(Context&) {}

}  // namespace trainyard::detail
