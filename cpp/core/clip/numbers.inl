// What eight numbers come to on their way through a pass: read, scaled, squared, clipped, added. Included
// into each target's namespace.

// Eight numbers from one place to another, and as doubles; each is read once. (Intel's vectors of float32 are
// converted from memory, here the copy, by half the operations that they take from a register.)
template <class T> static ELLIPSUM_INLINE Vec copy_numbers(const char* from, char* to) {
  constexpr int whole = vec_lanes * int(sizeof(T)), one = register_lanes * 8,
                size = whole < one ? whole : one;
  constexpr bool from_copy = std::is_same_v<T, float> && register_lanes >= 4;
  typedef T Part __attribute__((vector_size(size)));
  Vec x;
  ELLIPSUM_UNROLL
  for (int k = 0; k < whole; k += size) {
    Part part;
    std::memcpy(&part, from + k, sizeof part);
    __asm__("" : ELLIPSUM_REGISTER(part));
    std::memcpy(to + k, &part, sizeof part);
    if constexpr (std::is_same_v<T, double>) x.part[k / size] = Doubles(part);
    else if (!from_copy) widen_all(Floats(part), x.part + k * vec_parts / whole);
  }
  if constexpr (from_copy) {
    __asm__("" : "+r"(to));  // or the compiler knows what is there
    return load<T>(to);
  }
  return x;
}
// The first `count` of them; the others stay what they are.
template <class T> static inline Vec copy_first(const char* from, char* to, std::size_t count) {
  Vec x = load_first<T>(from, count);
  hold(x);
  double numbers[vec_lanes];
  store(numbers, x);
  for (std::size_t k = 0; k < count; ++k) {
    const T number = T(numbers[k]);
    std::memcpy(to + k * sizeof(T), &number, sizeof number);
  }
  return x;
}

// Are rows in flight left in their own units, so that their factors have the scale, too? It is 2^k then, with
// k such that nothing of a float32 leaves the normal doubles: all roundings are those of y times a power of two. No finite row is
// huge then (what a huge one leaves in flight has the scale for its factor).
template <class T, Task task, Form form>
constexpr bool is_unscaled = std::is_same_v<T, float> && form != Form::ellipsoid &&
                             (task == Task::ball || task == Task::halves);
template <class T, Task task, Form form>
constexpr bool squares_are_exact = is_unscaled<T, task, form> && form == Form::ball_at_zero;
constexpr double most_power = 0x1p100, least_center = 0x1p-300, most_center = 0x1p256;
static bool is_power(double scale) {
  int exponent;
  return std::frexp(scale, &exponent) == 0.5 && scale >= 1 / most_power && scale <= most_power;
}
static bool is_near(double center) {
  const double size = std::fabs(center);
  return size == 0 || (size >= least_center && size <= most_center);
}

// How a pass takes a region's rows, whose numbers have `size` bytes: its form, and the scale that factors
// have, 2^k: 1 where rows are scaled, as all but those of float32 in a ball are. Where those have to be, they
// go as in an ellipsoid.
struct Units {
  Form form;
  double scale;
};
static bool clips(const Region& region) {
  return region.task == Task::ball || region.task == Task::halves;
}
static Units units_of(const Region& region, std::size_t size) {
  if (is_mixed(region)) return {Form::ball_at_zero, 1};
  if (region.lower) return {Form::ellipsoid, 1};  // whose walk has each coordinate's ends anyway
  if (!clips(region) || region.form == Form::ellipsoid || size != sizeof(float))
    return {region.form, 1};
  if (is_power(region.scale[0]) && std::all_of(region.center, region.center + region.d, is_near))
    return {region.form, region.scale[0]};
  return {Form::ellipsoid, 1};
}

// Calls f with the form as a constant: one that leaves numbers unscaled, or that of an ellipsoid.
template <class T, Task task, class F> static void with_form(Form form, const F& f) {
  if constexpr (is_unscaled<T, task, Form::ball>) {
    if (form == Form::ball) return f(std::integral_constant<Form, Form::ball>());
    if (form == Form::ball_at_zero) return f(std::integral_constant<Form, Form::ball_at_zero>());
  }
  f(std::integral_constant<Form, Form::ellipsoid>());
}

// y of numbers x, not yet clipped; x - 0 is x but for the sign of a zero, which no integer has.
template <class T, Task task, Form form>
static ELLIPSUM_INLINE Vec scaled(const Vec& x, const Vec& center, const Vec& scale) {
  if constexpr (is_unscaled<T, task, form>) return form == Form::ball_at_zero ? x : x - center;
  else return form == Form::ball_at_zero ? x * scale : (x - center) * scale;
}

// Eight coordinates more of a squared norm; `exact` where their squares are. In a box they are clamped, and
// the squares of what they lost take its place: 0 only if each is, since doubles that differ do by 2^-452 or
// more next to limits of 2^-400 or more.
template <Task task, bool exact = false>
static ELLIPSUM_INLINE Vec add_square(const Vec& norm2, Vec& y, const Vec& limit) {
  if (exact) return multiply_add(y, y, norm2);
  if (task != Task::box) return norm2 + y * y;
  const Vec outside = bring_inside(y, limit);
  return multiply_add(outside, outside, norm2);
}

// Clipped coordinates to the sums (halves: those above 0 to sums of their own, too).
template <Task task>
static ELLIPSUM_INLINE void add_clipped(const Vec& clipped, VecInt& sum, VecInt& upper) {
  const Vec magic = fill(rounding_magic), rounded = clipped + magic;
  sum = add_bits(sum, rounded);
  if (task == Task::halves) upper = add_bits(upper, maximum(rounded, magic));
}
