-- ARGV: the deliveries to note; `TIME` or `IDLE`, and its milliseconds.
if not held then
    return 0
end
-- Redis 7 forgets a pending entry that is claimed when its content is gone.
if not stored() then
    return 2
end
redis.call('XCLAIM', stream, group, 'idem:released', 0, id, ARGV[6], ARGV[7], 'RETRYCOUNT', ARGV[5], 'JUSTID')
return 1
