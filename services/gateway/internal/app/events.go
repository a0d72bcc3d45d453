package app

// topic is the topic of the request log. The gateway writes no other messages.
const topic = "requests"
