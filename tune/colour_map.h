// Numbers as colours that everybody can tell apart.
#ifndef HEED_TUNE_COLOUR_MAP_H_
#define HEED_TUNE_COLOUR_MAP_H_

namespace heed {

struct Rgb {
  double red, green, blue;  // 0 to 1
};

// viridis, for t of 0 (dark blue) to 1 (yellow): equal steps look equal, and
// lightness rises all the way, so that it can be read in grey and by the
// colour-blind. By Stéfan van der Walt and Nathaniel Smith,
// https://bids.github.io/colormap; t outside is cut off, NaN is 0.
Rgb Viridis(double t);

// For lines: three of the colours of Okabe and Ito, "Color Universal Design",
// 2008, which the colour-blind tell apart. index: 0 to 2.
Rgb LineColour(int index);

}  // namespace heed

#endif  // HEED_TUNE_COLOUR_MAP_H_
