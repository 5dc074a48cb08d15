"""BMQ-Index: Shared and Incremental Processing of Border Monitoring Queries over Data Streams \
(Lee and others)"""
