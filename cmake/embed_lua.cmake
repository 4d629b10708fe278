# Assembles every Lua script in FILES and writes the header OUTPUT with the text and the SHA-1 of each.
#
# A line "-- include: NAME" stands for the file shared/NAME.lua next to the script, at the same
# indentation. The assembled scripts are kept in the folder ASSEMBLED under their own names, so that
# redis-cli --eval can run what the library sends.
set(header "/* The Lua scripts as strings, with the SHA-1 of each. Made by cmake/embed_lua.cmake. */\n")
string(APPEND header "#ifndef HF_REDIS_LUA_SCRIPTS_H\n#define HF_REDIS_LUA_SCRIPTS_H\n")

# Reading as text drops these bytes, and then the SHA-1 would not be that of the string.
function(read_script file result)
  file(READ ${file} hex HEX)
  if(hex MATCHES "^(..)*(00|0d)")
    message(FATAL_ERROR "${file}: NUL and carriage return cannot be embedded")
  endif()
  file(READ ${file} text)
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

foreach(file ${FILES})
  get_filename_component(name ${file} NAME_WE)
  get_filename_component(folder ${file} DIRECTORY)
  read_script(${file} text)
  string(REGEX MATCHALL "\t*-- include: [a-z_]+\n" includes "${text}")
  list(SORT includes) # the deeper indented first, as the others are part of them
  foreach(include ${includes})
    string(REGEX REPLACE "-- include: .*" "" indent "${include}")
    string(REGEX REPLACE ".*: ([a-z_]+)\n" "\\1" shared "${include}")
    read_script(${folder}/shared/${shared}.lua block)
    string(REGEX REPLACE "([^\n]+)" "${indent}\\1" block "${block}")
    string(REPLACE "${include}" "${block}" text "${text}")
  endforeach()
  file(WRITE ${ASSEMBLED}/${name}.lua "${text}")
  file(SHA1 ${ASSEMBLED}/${name}.lua sha)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "?" "\\?" text "${text}") # or ??( would be a trigraph
  string(REPLACE "\t" "\\t" text "${text}")
  string(REPLACE "\n" "\\n\"\n\t\"" text "${text}")
  string(APPEND header "\nstatic const char hf__lua_${name}[] =\n\t\"${text}\";\n"
                       "static const char hf__lua_${name}_sha[] = \"${sha}\";\n")
endforeach()

string(APPEND header "\n#endif\n")
file(WRITE ${OUTPUT} "${header}")
