// Variants that differ in nothing but what they ask the memory for, which no result depends on; those of
// columns also in the rows that a block may have, 432 or more (d <= 300), which the tests that leave some
// out do not fill but at d = 3, where it is as many in all.
#pragma once
#include <string>

// The name of a variant (variant_names) without that.
inline std::string way_of(std::string variant) {
  for (const char* asks : {"-far", "-near", "-both", "-beside"}) {
    const std::size_t at = variant.find(asks);
    if (at != std::string::npos) variant.erase(at, std::string(asks).size());
  }
  return variant;
}
