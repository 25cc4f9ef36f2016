#include "trainyard/step.h"

#include <new>
#include <stdexcept>

#include <fmt/format.h>

#include "base/result.h"
#include "sys/files.h"
#include "trainyard/detail/step_node.h"
#include "trainyard/step_options.h"
#include "trainyard/steps.h"

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

bool Touched::overlaps(const Touched& other, const Context& context) const {
  if (!member || !other.member) {
    return !member && !other.member && !resource.empty() && resource == other.resource;
  }
  const Range mine = member(context);
  const Range its = other.member(context);
  return mine.first < its.first + its.size && its.first < mine.first + mine.size;
}

std::string more_than_text(std::string_view member, double value, double limit) {
  return fmt::format("{} is {:.6g}, more than {:.6g}", member, value, limit);
}

void save_file(const std::string& directory, const std::string& name, std::string_view bytes) {
  Result<void> done = sys::make_directories(directory);
  if (done) done = sys::write_file_atomically(directory + "/" + name, bytes);
  if (!done) throw std::runtime_error(done.error().message);
}

}  // namespace trainyard::detail
