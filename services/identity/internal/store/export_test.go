package store

// AuditQuery is the statement of AuditPage.
var AuditQuery = auditQuery

// SweepRegistered is the statement of SweepRegisteredApps.
const SweepRegistered = sweepRegistered
