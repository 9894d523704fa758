// One error enum, one exception; translated once, at the bindings.
#pragma once
#include <stdexcept>
#include <string>

namespace ellipsum {

enum class Error { invalid_argument, unknown_target, unsupported_target };

class Exception : public std::runtime_error {
 public:
  Exception(Error kind, const std::string& what) : std::runtime_error(what), kind_(kind) {}
  Error kind() const noexcept { return kind_; }

 private:
  Error kind_;
};

}  // namespace ellipsum
