package store

// AuditQuery is the statement of AuditPage.
var AuditQuery = auditQuery
