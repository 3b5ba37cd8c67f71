// Lists of shapes as the command line takes them: names, problem strings, or a
// JSON file of these.
#ifndef HEED_TUNE_SHAPES_FILE_H_
#define HEED_TUNE_SHAPES_FILE_H_

#include <string>
#include <vector>

#include "tune/shapes.h"

namespace heed {

// A list as ParseShapeList() takes it; or, if it ends in ".json" or holds a
// slash, the path of a file of at most 1 MiB: an array, or an object whose
// member "shapes" is one, of such items and of {"name": ..., "problem": ...}.
// What is there twice is taken once. On failure false and one line.
bool ReadShapes(const std::string& list_or_path,
                std::vector<NamedProblem>* shapes, std::string* why);

}  // namespace heed

#endif  // HEED_TUNE_SHAPES_FILE_H_
