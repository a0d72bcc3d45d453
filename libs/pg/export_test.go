package pg

// Prepare runs on each new connection.
var Prepare = Options.prepare

// Skipped is skipped.
var Skipped = skipped
