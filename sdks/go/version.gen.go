// Code generated from the contract by make gen. DO NOT EDIT.

package holdfast

// Version is the version of the SDK.
const Version = "0.1.0"
