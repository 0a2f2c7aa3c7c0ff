# Writes OUTPUT, a C file with the bytes of FILES (see TileStandardFile in driver/unit.h).
set(arrays "")
set(rows "")
set(number 0)
foreach(path IN LISTS FILES)
  get_filename_component(name ${path} NAME)
  file(READ ${path} bytes HEX)
  string(LENGTH "${bytes}" digits)
  math(EXPR length "${digits} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "((0x..,){20})" "\\1\n    " bytes "${bytes}")
  string(APPEND arrays "static const unsigned char file_${number}[] = {\n    ${bytes}0};\n")
  string(APPEND rows "    {\"${name}\", (const char *)file_${number}, ${length}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT}
     "/* Generated from stdlib/ by driver/embed.cmake. */\n#include \"driver/unit.h\"\n\n${arrays}\n"
     "const TileStandardFile tile_standard_library[] = {\n${rows}    {0},\n};\n")
