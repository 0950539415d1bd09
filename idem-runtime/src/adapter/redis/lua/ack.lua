if not held then
    return 0
end
redis.call('XACK', stream, group, id)
return 1
