package viz

// longestLabel is the width at which labels are cut, in character cells.
const longestLabel = 16

// longestTitle is the width at which titles are cut, in character cells, however much room they have.
const longestTitle = 2000
